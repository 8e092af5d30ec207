/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The help screen of zernel top, and the menu of columns to sort by. */
#include <stdio.h>
#include "base/macros.h"
#include "cli/top/top.h"

#define KEYS_WIDTH 14
#define HALF	   38
#define MENU_X	   4
#define MENU_WIDTH 46

static const struct {
	const char *keys;
	const char *help;
} keys[] = {
	{ "arrows, pages", "move" },	     { "left, right", "show other columns" },
	{ "Enter, click", "open or close" }, { "t", "show or hide threads" },
	{ "s", "sort by a column" },	     { "/", "filter by name or pid" },
	{ "Esc", "clear the filter" },	     { "p", "pause or continue" },
	{ "h, ?", "show this help" },	     { "q", "quit" },
};

static void draw_phases(struct canvas *canvas, u32 y, u32 x)
{
	for (u32 phase = 0; phase < PHASE_NR; phase++) {
		bool coloured = canvas->colour && phase != PHASE_UNKNOWN;

		canvas_print(canvas, y + phase, x, 3,
			     coloured ? CANVAS_PHASE + phase : CANVAS_PLAIN, " %c ",
			     coloured ? ' ' : top_phase_letter(phase));
		canvas_print(canvas, y + phase, x + 4, canvas->width, CANVAS_PLAIN, "%-8s%s",
			     top_phase_word(phase), phase_label(phase));
	}
}

void top_draw_help(struct canvas *canvas, u32 y, u32 height)
{
	struct canvas below = *canvas;
	u32 nr = ARRAY_SIZE(keys);

	/* Do not draw over the footer. */
	below.height = y + height;
	canvas_print(&below, y, 0, canvas->width, CANVAS_PLAIN, "KEYS");
	canvas_print(&below, y, HALF, canvas->width, CANVAS_PLAIN,
		     "COLUMNS (over the last 5 to 10 s)");
	canvas_fill(&below, y++, CANVAS_BAR);
	for (u32 i = 0; i < nr; i++) {
		canvas_print(&below, y + i, 0, KEYS_WIDTH, CANVAS_TITLE, "%s", keys[i].keys);
		canvas_print(&below, y + i, KEYS_WIDTH, HALF - KEYS_WIDTH - 1, CANVAS_PLAIN, "%s",
			     keys[i].help);
	}
	for (u32 id = 1; id < TOP_COLUMN_NR; id++) {
		canvas_print(&below, y + id - 1, HALF, 8, CANVAS_TITLE, "%s",
			     top_columns[id].title);
		canvas_print(&below, y + id - 1, HALF + 8, canvas->width, CANVAS_PLAIN, "%s",
			     top_columns[id].help);
	}
	draw_phases(&below, y + TOP_COLUMN_NR, HALF);
}

void top_draw_sort(const struct top *top, struct canvas *canvas, u32 y, u32 height)
{
	u32 shown = height < TOP_COLUMN_NR + 1 ? height - 1 : TOP_COLUMN_NR;
	u32 first = top->choice >= shown ? top->choice - shown + 1 : 0;

	canvas_print(canvas, y, MENU_X, MENU_WIDTH, CANVAS_BAR, "%-*s", MENU_WIDTH,
		     " sort by: arrows and Enter");
	for (u32 i = 0; i < shown; i++) {
		const struct top_column *column = &top_columns[first + i];

		canvas_print(canvas, y + 1 + i, MENU_X, MENU_WIDTH,
			     first + i == top->choice ? CANVAS_BAR : CANVAS_PLAIN, " %-9s%-*s",
			     first + i == TOP_COLUMN_NAME ? "NAME" : column->title, MENU_WIDTH - 10,
			     column->help);
	}
}
