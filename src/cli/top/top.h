/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The content and the keys of `zernel top`, without a terminal: rows of the tree, columns, and the
 * screen as a canvas. top_screen.h accesses the terminal, cmd_top.c has the loop.
 */
#include "cli/term.h"
#include "cli/top/top_canvas.h"
#include "cli/top/top_model.h"

enum top_row_kind {
	TOP_ROW_JOB,
	TOP_ROW_PROCESS,
	TOP_ROW_THREAD,
};

/* One line of the table. */
struct top_row {
	enum top_row_kind kind;
	u32 index; /* into the snapshot's array of that kind */
	u32 depth;
	bool has_children;
	bool open;
};

struct top_rows {
	struct top_row *rows;
	u32 nr;
	u32 room;
};

enum top_column_id {
	TOP_COLUMN_NAME, /* always shown, on the left */
	TOP_COLUMN_RANK,
	TOP_COLUMN_PHASE, /* phase of a process, role of a thread */
	TOP_COLUMN_IDLE,
	TOP_COLUMN_CAUSE,
	TOP_COLUMN_STEP,
	TOP_COLUMN_RATE,
	TOP_COLUMN_WAIT,
	TOP_COLUMN_MEMORY,
	TOP_COLUMN_NR,
};

struct top_cell {
	char text[SNAPSHOT_TEXT_LEN + 32];
	enum canvas_style style;
};

struct top_column {
	const char *title;
	const char *help;
	u32 width; /* minimum width for the name */
	bool right;
	bool descending; /* largest value first */
	void (*cell)(const struct top_model *model, const struct top_row *row,
		     struct top_cell *ret);
	/* The sort key; below 0: unknown. NULL: sort by the text of the cell. */
	double (*value)(const struct top_model *model, const struct top_row *row);
};

extern const struct top_column top_columns[TOP_COLUMN_NR];

/* Positions of the columns. The strip of phases gets the remaining width. */
struct top_layout {
	struct {
		enum top_column_id id;
		u32 x;
		u32 width;
	} at[TOP_COLUMN_NR];
	u32 nr;
	u32 strip_x;
	u32 strip_width; /* 0: no room for the strip */
};

/* Leaves out the first `skip` columns after the name. */
struct top_layout top_layout(u32 width, u32 skip);

enum top_mode {
	TOP_MODE_TABLE,
	TOP_MODE_FILTER, /* the user types a filter */
	TOP_MODE_SORT,	 /* the user chooses a column */
	TOP_MODE_HELP,
};

#define TOP_FILTER_LEN 64

/* Identifies the selected row when rows appear and disappear. */
struct top_identity {
	enum top_row_kind kind;
	u32 id;
	u64 start_ns;
	char cgroup[JOB_CGROUP_LEN];
};

struct top {
	struct top_model model;
	struct top_rows rows;
	enum top_mode mode;
	enum top_column_id sort;
	enum top_column_id choice; /* in TOP_MODE_SORT */
	char filter[TOP_FILTER_LEN];
	bool paused;
	bool quit;
	u32 skip_columns;
	u32 selected; /* index of the selected row */
	struct top_identity identity;
	u32 first; /* the first visible row */
	/* Position of the table on the screen, for mouse clicks. */
	u32 table_y;
	u32 table_height;
	u32 width;
	char trouble[128]; /* problem with zerneld; empty: no problem */
};

enum top_key {
	TOP_KEY_NONE,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
	TOP_KEY_CHARACTER,
	TOP_KEY_CLICK,
	TOP_KEY_WHEEL_UP,
	TOP_KEY_WHEEL_DOWN,
	TOP_KEY_NR,
};

struct top_event {
	enum top_key key;
	u32 character; /* Unicode */
	u32 x, y;      /* position of the mouse */
};

void top_done(struct top *top);

/* Takes ownership of the snapshot. While paused, discards it. */
int top_feed(struct top *top, struct snapshot *snapshot);

/* Sets the text about a problem with zerneld; NULL: the problem is over. */
void top_trouble(struct top *top, const char *text);

int top_event(struct top *top, const struct top_event *event);

/* Draws the whole canvas, of any size. */
void top_draw(struct top *top, struct canvas *canvas);

/* Parts of the screen: top_rows.c, top_header.c, top_table.c, top_help.c. */
int top_rows_build(struct top_rows *rows, const struct top_model *model, enum top_column_id sort,
		   const char *filter);
void top_row_toggle(struct top_model *model, const struct top_row *row);
struct top_identity top_identity_of(const struct top_model *model, const struct top_row *row);
u32 top_draw_header(const struct top_model *model, struct canvas *canvas);
void top_draw_table(struct top *top, struct canvas *canvas, u32 y, u32 height);
void top_draw_sort(const struct top *top, struct canvas *canvas, u32 y, u32 height);
void top_draw_help(struct canvas *canvas, u32 y, u32 height);
void top_draw_footer(const struct top *top, struct canvas *canvas);

struct unit_text top_compact(struct unit_text from);

/* Short names for narrow columns. A letter shows a phase on a terminal without color. */
char top_phase_letter(u32 phase);
const char *top_phase_word(u32 phase);
const char *top_role_word(u32 role);
const char *top_cause_word(u32 cause);
