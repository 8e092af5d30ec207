/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What all commands show things with: colours where somebody sees them, and tables whose
 * columns line up. In a pipe there is no colour and no width.
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
	u32 width; /* 0: as wide and as high as it takes */
	u32 height;
	bool colour;
};

/* --color. */
enum colour {
	COLOUR_AUTO, /* for terminals, unless NO_COLOR is set or TERM is dumb */
	COLOUR_ALWAYS,
	COLOUR_NEVER,
	COLOUR_NR,
};

/* -EINVAL: it is none of auto, always and never. */
int term_parse_colour(const char *text, enum colour *ret);

struct term term_open(FILE *out, enum colour colour);

/* Never more than one line; what a terminal would obey is shown as a question mark. */
__attribute__((format(printf, 3, 4))) void term_print(const struct term *term, enum style style,
						      const char *format, ...);

struct column {
	const char *title;
	bool right; /* numbers, mostly */
};

struct table;

/* The columns end with one without a title, and outlive the table. */
struct table *table_new(const struct column *columns);
struct table *table_free(struct table *table);
DEFINE_CLEANUP(struct table, table_free);

/* The next cell, row by row. NULL for `table` is no table: that is found when it is printed. */
__attribute__((format(printf, 3, 4))) void table_cell(struct table *table, enum style style,
						      const char *format, ...);

/* Lines are cut where the terminal ends. -ENOMEM when not all of it could be kept. */
int table_print(const struct table *table, const struct term *term);
