/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A text that grows at its end. A large one needs the memory of its content only: the kernel
 * moves its pages when it grows, and the part that is not written yet takes no memory.
 */
#include <stddef.h>
#include "base/macros.h"

/* Zeroed, it is empty. After an error it has no data, and all later additions fail. */
struct text {
	char *data; /* with a terminating zero that `length` does not count */
	size_t length;
	size_t capacity;
	int error;
};

void text_add(struct text *text, const char *bytes, size_t length);
void text_add_string(struct text *text, const char *string);
/* Gives back the memory behind the content. Returns 0, or the error of an addition. */
int text_end(struct text *text);
void text_clear(struct text *text);

#define CLEANUP_TEXT CLEANUP(text_clear)
