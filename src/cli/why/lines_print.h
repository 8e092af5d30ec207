/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the answer of answers/lines.h. */
#include "answers/lines.h"
#include "cli/term.h"

enum lines_format {
	LINES_TEXT, /* a sentence and a tree */
	LINES_JSON,
	LINES_FOLDED,
	LINES_SVG,
	LINES_PPROF,
	LINES_FORMAT_NR,
};

int lines_print(const struct lines *lines, enum lines_format format, const struct term *term);
