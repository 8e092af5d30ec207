/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Captures printed text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/term.h"

struct capture {
	FILE *out;
	struct captured {
		char *text;
		size_t length;
	} *captured; /* target of the stream */
};

static inline struct capture capture_begin(void)
{
	struct capture capture = { .captured = calloc(1, sizeof(*capture.captured)) };

	assert_non_null(capture.captured);
	capture.out = open_memstream(&capture.captured->text, &capture.captured->length);
	assert_non_null(capture.out);
	return capture;
}

/* The caller frees the text. */
static inline char *capture_end(struct capture *capture)
{
	char *text;

	fclose(capture->out);
	text = capture->captured->text;
	free(capture->captured);
	return text;
}
