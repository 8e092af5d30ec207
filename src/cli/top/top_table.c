/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of zernel top, and the lines above and below it. */
#include <stdio.h>
#include <string.h>
#include "cli/top/top.h"

#define LEGEND_WIDTH 30

static void draw_strip(const struct top_process *process, const struct top_layout *layout,
		       struct canvas *canvas, u32 y)
{
	for (u32 i = 0; i < layout->strip_width; i++) {
		u32 phase = top_strip(process, layout->strip_width - 1 - i);
		bool coloured = canvas->colour && phase < PHASE_NR && phase != PHASE_UNKNOWN;

		canvas_print(canvas, y, layout->strip_x + i, 1,
			     coloured ? CANVAS_PHASE + phase : CANVAS_PLAIN, "%c",
			     coloured ? ' ' : top_phase_letter(phase));
	}
}

static void draw_cell(struct canvas *canvas, u32 y, u32 x, u32 width, bool right,
		      const struct top_cell *cell)
{
	u32 used = (u32)strlen(cell->text);
	u32 indent = right && used < width ? width - used : 0;

	canvas_print(canvas, y, x + indent, width - indent, cell->style, "%s", cell->text);
}

static void draw_row(const struct top *top, const struct top_row *row,
		     const struct top_layout *layout, struct canvas *canvas, u32 y)
{
	for (u32 i = 0; i < layout->nr; i++) {
		const struct top_column *column = &top_columns[layout->at[i].id];
		struct top_cell cell = {};

		column->cell(&top->model, row, &cell);
		draw_cell(canvas, y, layout->at[i].x, layout->at[i].width, column->right, &cell);
	}
	if (row->kind == TOP_ROW_PROCESS && layout->strip_width)
		draw_strip(top->model.processes[row->index], layout, canvas, y);
}

/* The colors of the phases, if there is room. Their letters are the first letters of the words. */
static void draw_legend(const struct top_layout *layout, struct canvas *canvas, u32 y)
{
	u32 x = layout->strip_x;

	if (!layout->strip_width)
		return;
	x += canvas_print(canvas, y, x, layout->strip_width, CANVAS_PLAIN, "PHASES ");
	if (layout->strip_width < LEGEND_WIDTH)
		return;
	for (u32 phase = PHASE_UNKNOWN + 1; phase < PHASE_NR; phase++)
		x += 1 + canvas_print(canvas, y, x, LEGEND_WIDTH,
				      canvas->colour ? CANVAS_PHASE + phase : CANVAS_PLAIN, "%s",
				      top_phase_word(phase));
}

static void draw_titles(const struct top *top, const struct top_layout *layout,
			struct canvas *canvas, u32 y)
{
	for (u32 i = 0; i < layout->nr; i++) {
		const struct top_column *column = &top_columns[layout->at[i].id];
		struct top_cell cell = {};

		cell.style = layout->at[i].id == top->sort ? CANVAS_SORTED : CANVAS_PLAIN;
		snprintf(cell.text, sizeof(cell.text), "%s", column->title);
		draw_cell(canvas, y, layout->at[i].x, layout->at[i].width, column->right, &cell);
	}
	draw_legend(layout, canvas, y);
	canvas_fill(canvas, y, CANVAS_BAR);
}

static void draw_empty(const struct top *top, struct canvas *canvas, u32 y)
{
	if (!top->model.snapshot)
		canvas_print(canvas, y, 0, canvas->width, CANVAS_DIM, "Waiting for zerneld.");
	else if (top->filter[0])
		canvas_print(canvas, y, 0, canvas->width, CANVAS_DIM,
			     "No job or process matches '%s'.", top->filter);
	else
		canvas_print(canvas, y, 0, canvas->width, CANVAS_DIM, "No process uses a GPU.");
}

void top_draw_table(struct top *top, struct canvas *canvas, u32 y, u32 height)
{
	struct top_layout layout = top_layout(canvas->width, top->skip_columns);

	draw_titles(top, &layout, canvas, y);
	top->table_y = y + 1;
	top->table_height = height - 1;
	top->width = canvas->width;
	/* Scroll as little as needed to show the selected row. */
	if (top->first > top->selected)
		top->first = top->selected;
	if (top->table_height && top->selected >= top->first + top->table_height)
		top->first = top->selected - top->table_height + 1;
	if (top->rows.nr == 0 && top->table_height)
		draw_empty(top, canvas, top->table_y);
	for (u32 i = 0; i < top->table_height && top->first + i < top->rows.nr; i++) {
		u32 row = top->first + i;

		draw_row(top, &top->rows.rows[row], &layout, canvas, top->table_y + i);
		if (row == top->selected)
			canvas_select(canvas, top->table_y + i,
				      layout.strip_width ? layout.strip_x : canvas->width);
	}
}

void top_draw_footer(const struct top *top, struct canvas *canvas)
{
	u32 y = canvas->height - 1, x = 0;

	if (top->mode == TOP_MODE_FILTER) {
		x = canvas_print(canvas, y, 0, canvas->width, CANVAS_PLAIN, "/%s", top->filter);
		canvas_print(canvas, y, x, canvas->width, CANVAS_BAR, " ");
		return;
	}
	if (top->trouble[0])
		x += canvas_print(canvas, y, x, canvas->width, CANVAS_BAD, "%s ", top->trouble);
	if (top->paused)
		x += canvas_print(canvas, y, x, canvas->width, CANVAS_WARNING, "paused ");
	if (top->filter[0])
		x += canvas_print(canvas, y, x, canvas->width, CANVAS_WARNING, "filter '%s' ",
				  top->filter);
	canvas_print(canvas, y, x, canvas->width, CANVAS_PLAIN, "%s",
		     "Enter open  t threads  s sort  / filter  p pause  h help  q quit");
	canvas_fill(canvas, y, CANVAS_BAR);
}

void top_draw(struct top *top, struct canvas *canvas)
{
	u32 y, height;

	if (canvas->height < 3 || canvas->width == 0)
		return;
	y = top_draw_header(&top->model, canvas);
	if (y > canvas->height - 3)
		y = canvas->height - 3;
	height = canvas->height - y - 1;
	if (top->mode == TOP_MODE_HELP)
		top_draw_help(canvas, y, height);
	else
		top_draw_table(top, canvas, y, height);
	if (top->mode == TOP_MODE_SORT)
		top_draw_sort(top, canvas, y, height);
	top_draw_footer(top, canvas);
}
