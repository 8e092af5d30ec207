/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Text output of all commands: colors on a terminal, and tables with aligned columns. A pipe gets
 * no color and no line width limit.
 */
#include <stdbool.h>
#include <stdio.h>
#include "abi/types.h"
#include "base/macros.h"
#include "base/units.h"

enum style {
	STYLE_PLAIN,
	STYLE_TITLE,
	STYLE_DIM,
	STYLE_GOOD,
	STYLE_WARNING,
	STYLE_BAD,
	STYLE_NR,
};

struct term {
	FILE *out;
	u32 width; /* 0: no limit; also for the height */
	u32 height;
	bool colour;
};

/* The values of --color. */
enum colour {
	COLOUR_AUTO, /* color on terminals, unless NO_COLOR is set or TERM is dumb */
	COLOUR_ALWAYS,
	COLOUR_NEVER,
	COLOUR_NR,
};

/* -EINVAL: the text is not auto, always or never. */
int term_parse_colour(const char *text, enum colour *ret);

struct term term_open(FILE *out, enum colour colour);

/* Prints at most one line. Control characters in it become question marks. */
__attribute__((format(printf, 3, 4))) void term_print(const struct term *term, enum style style,
						      const char *format, ...);

struct column {
	const char *title;
	bool right; /* align right, for numbers */
};

struct table;

/* A column without a title ends the list. The columns must outlive the table. */
struct table *table_new(const struct column *columns);
struct table *table_free(struct table *table);
DEFINE_CLEANUP(struct table, table_free);

/* Adds the next cell, row by row. `table` may be NULL: table_print() reports it. */
__attribute__((format(printf, 3, 4))) void table_cell(struct table *table, enum style style,
						      const char *format, ...);

/* Cuts lines at the width of the terminal. -ENOMEM: a cell could not be stored. */
int table_print(const struct table *table, const struct term *term);
