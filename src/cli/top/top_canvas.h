/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A screen of characters in memory. What `zernel top` shows is drawn here and only then
 * put on a terminal, so that tests can look at it and no text can get beyond its place.
 */
#include <stdbool.h>
#include <wchar.h>
#include "abi/types.h"
#include "core/phase.h"

enum canvas_style {
	CANVAS_PLAIN,
	CANVAS_TITLE,
	CANVAS_DIM,
	CANVAS_GOOD,
	CANVAS_WARNING,
	CANVAS_BAD,
	CANVAS_BAR,    /* the line above and below the table */
	CANVAS_SORTED, /* in it, what the table is sorted by */
	CANVAS_PHASE,  /* + phase: the background has its colour */
	CANVAS_STYLE_NR = CANVAS_PHASE + PHASE_NR,
};

struct canvas_cell {
	wchar_t character; /* 0: the one before takes two columns */
	u8 style;
	bool selected;
};

struct canvas {
	u32 width;
	u32 height;
	bool colour; /* whether the terminal has any */
	struct canvas_cell *cells;
};

/* Empty. A canvas that is all zero but `colour` becomes one of that size. */
int canvas_resize(struct canvas *canvas, u32 width, u32 height);
void canvas_done(struct canvas *canvas);

/*
 * Writes from column `x` on, `width` columns at most and never beyond the canvas, and
 * returns how many it took. What a terminal would obey is shown as a question mark, what
 * takes no column is left out.
 */
__attribute__((format(printf, 6, 7))) u32 canvas_print(struct canvas *canvas, u32 y, u32 x,
						       u32 width, enum canvas_style style,
						       const char *format, ...);

/* Gives all columns of a line that are still plain this style. */
void canvas_fill(struct canvas *canvas, u32 y, enum canvas_style style);

/* Marks `width` columns from the left as selected. */
void canvas_select(struct canvas *canvas, u32 y, u32 width);
