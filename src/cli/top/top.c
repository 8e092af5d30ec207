/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of zernel top: snapshots, keys, clicks. */
#include "cli/top/top.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHEEL_ROWS 3

void top_done(struct top *top)
{
	top_model_done(&top->model);
	free(top->rows.rows);
	top->rows = (struct top_rows){};
}

static void select_row(struct top *top, u32 row)
{
	if (row >= top->rows.nr)
		row = top->rows.nr ? top->rows.nr - 1 : 0;
	top->selected = row;
	if (top->rows.nr)
		top->identity = top_identity_of(&top->model, &top->rows.rows[row]);
}

/* The selected row stays selected at its new place. */
static int rebuild(struct top *top)
{
	int err = top_rows_build(&top->rows, &top->model, top->sort, top->filter);

	if (err < 0)
		return err;
	for (u32 i = 0; i < top->rows.nr; i++) {
		struct top_identity its = top_identity_of(&top->model, &top->rows.rows[i]);

		if (its.kind == top->identity.kind && its.id == top->identity.id &&
		    its.start_ns == top->identity.start_ns &&
		    strcmp(its.cgroup, top->identity.cgroup) == 0) {
			top->selected = i;
			return 0;
		}
	}
	select_row(top, top->selected);
	return 0;
}

int top_feed(struct top *top, struct snapshot *snapshot)
{
	int err;

	if (top->paused) {
		snapshot_free(snapshot);
		return 0;
	}
	err = top_model_feed(&top->model, snapshot);
	return err < 0 ? err : rebuild(top);
}

void top_trouble(struct top *top, const char *text)
{
	bool had = top->trouble[0];

	snprintf(top->trouble, sizeof(top->trouble), "%s", text ? text : "");
	if (!had && text && !top->paused)
		top_model_gap(&top->model);
}

static void move(struct top *top, s64 by)
{
	s64 to = (s64)top->selected + by;

	select_row(top, to < 0 ? 0 : (u32)to);
}

static int toggle_selected(struct top *top)
{
	if (top->selected < top->rows.nr)
		top_row_toggle(&top->model, &top->rows.rows[top->selected]);
	return rebuild(top);
}

static int set_filter(struct top *top, const char *text)
{
	snprintf(top->filter, sizeof(top->filter), "%s", text);
	return rebuild(top);
}

static void encode(u32 character, char *to)
{
	static const struct {
		u32 below, first, nr;
	} rows[] = {
		{ 0x80, 0, 1 }, { 0x800, 0xc0, 2 }, { 0x10000, 0xe0, 3 }, { 0x110000, 0xf0, 4 }
	};
	u32 i = 0;

	while (i < 3 && character >= rows[i].below)
		i++;
	for (u32 k = rows[i].nr - 1; k > 0; k--, character >>= 6)
		to[k] = (char)(0x80 | (character & 0x3f));
	to[0] = (char)(rows[i].first | character);
	to[rows[i].nr] = '\0';
}

static int filter_event(struct top *top, const struct top_event *event)
{
	size_t used = strlen(top->filter);
	char text[TOP_FILTER_LEN + 8];

	memcpy(text, top->filter, used + 1);
	switch (event->key) {
	case TOP_KEY_CHARACTER: encode(event->character, text + used); break;
	case TOP_KEY_BACKSPACE:
		while (used > 0 && (text[--used] & 0xc0) == 0x80)
			;
		text[used] = '\0';
		break;
	case TOP_KEY_ENTER: top->mode = TOP_MODE_TABLE; return 0;
	case TOP_KEY_ESCAPE: top->mode = TOP_MODE_TABLE; return set_filter(top, "");
	default: return 0;
	}
	return strlen(text) < sizeof(top->filter) ? set_filter(top, text) : 0;
}

static int sort_event(struct top *top, const struct top_event *event)
{
	switch (event->key) {
	case TOP_KEY_UP: top->choice -= top->choice > 0; break;
	case TOP_KEY_DOWN: top->choice += top->choice + 1 < TOP_COLUMN_NR; break;
	case TOP_KEY_ENTER:
		top->sort = top->choice;
		top->mode = TOP_MODE_TABLE;
		return rebuild(top);
	case TOP_KEY_ESCAPE:
	case TOP_KEY_CHARACTER: top->mode = TOP_MODE_TABLE; break;
	default: break;
	}
	return 0;
}

static int pause_or_go_on(struct top *top)
{
	top->paused = !top->paused;
	if (!top->paused)
		top_model_gap(&top->model);
	return 0;
}

static int character_event(struct top *top, u32 character)
{
	switch (character) {
	case 'q': top->quit = true; return 0;
	case 'h':
	case '?': top->mode = TOP_MODE_HELP; return 0;
	case '/': top->mode = TOP_MODE_FILTER; return set_filter(top, "");
	case 's':
		top->mode = TOP_MODE_SORT;
		top->choice = top->sort;
		return 0;
	case 'p': return pause_or_go_on(top);
	case 't': top_model_expand(&top->model, !top->model.expand_new); return rebuild(top);
	case ' ': return toggle_selected(top);
	default: return 0;
	}
}

/* A click on a title sorts by it. A click on a row selects it, or toggles a selected row. */
static int click(struct top *top, u32 x, u32 y)
{
	struct top_layout layout = top_layout(top->width, top->skip_columns);
	u32 row = top->first + y - top->table_y;

	if (y + 1 == top->table_y) {
		for (u32 i = 0; i < layout.nr; i++)
			if (x >= layout.at[i].x && x < layout.at[i].x + layout.at[i].width)
				top->sort = layout.at[i].id;
		return rebuild(top);
	}
	if (y < top->table_y || y >= top->table_y + top->table_height || row >= top->rows.nr)
		return 0;
	if (row == top->selected)
		return toggle_selected(top);
	select_row(top, row);
	return 0;
}

static int table_event(struct top *top, const struct top_event *event)
{
	s64 page = top->table_height > 1 ? top->table_height - 1 : 1;

	switch (event->key) {
	case TOP_KEY_UP: move(top, -1); break;
	case TOP_KEY_DOWN: move(top, 1); break;
	case TOP_KEY_PAGE_UP: move(top, -page); break;
	case TOP_KEY_PAGE_DOWN: move(top, page); break;
	case TOP_KEY_WHEEL_UP: move(top, -WHEEL_ROWS); break;
	case TOP_KEY_WHEEL_DOWN: move(top, WHEEL_ROWS); break;
	case TOP_KEY_HOME: select_row(top, 0); break;
	case TOP_KEY_END: select_row(top, top->rows.nr); break;
	case TOP_KEY_LEFT: top->skip_columns -= top->skip_columns > 0; break;
	case TOP_KEY_RIGHT: top->skip_columns += top->skip_columns + 2 < TOP_COLUMN_NR; break;
	case TOP_KEY_ENTER: return toggle_selected(top);
	case TOP_KEY_ESCAPE: return set_filter(top, "");
	case TOP_KEY_CLICK: return click(top, event->x, event->y);
	case TOP_KEY_CHARACTER: return character_event(top, event->character);
	default: break;
	}
	return 0;
}

int top_event(struct top *top, const struct top_event *event)
{
	switch (top->mode) {
	case TOP_MODE_FILTER: return filter_event(top, event);
	case TOP_MODE_SORT: return sort_event(top, event);
	case TOP_MODE_HELP:
		/* Any key closes the help, also q. */
		top->mode = TOP_MODE_TABLE;
		return 0;
	case TOP_MODE_TABLE: break;
	}
	return table_event(top, event);
}
