/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A screen of characters in memory. `zernel top` draws on the canvas and then copies it to the
 * terminal, so that tests can check it and no text can exceed its place.
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
	CANVAS_SORTED, /* title of the column by which the table is sorted */
	CANVAS_PHASE,  /* + phase: background in the color of the phase */
	CANVAS_STYLE_NR = CANVAS_PHASE + PHASE_NR,
};

struct canvas_cell {
	wchar_t character; /* 0: second column of a wide character */
	u8 style;
	bool selected;
};

struct canvas {
	u32 width;
	u32 height;
	bool colour; /* the terminal has colors */
	struct canvas_cell *cells;
};

/* Clears and resizes the canvas. All members but `colour` may be zero before. */
int canvas_resize(struct canvas *canvas, u32 width, u32 height);
void canvas_done(struct canvas *canvas);

/*
 * Writes at most `width` columns from column `x` on, never beyond the canvas, and returns the
 * number of columns used. Control characters become question marks. Characters without a width
 * are left out.
 */
__attribute__((format(printf, 6, 7))) u32 canvas_print(struct canvas *canvas, u32 y, u32 x,
						       u32 width, enum canvas_style style,
						       const char *format, ...);

/* Sets the style of all columns of a line that are still plain. */
void canvas_fill(struct canvas *canvas, u32 y, enum canvas_style style);

/* Marks the first `width` columns of a line as selected. */
void canvas_select(struct canvas *canvas, u32 y, u32 width);
