/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What `zernel top` shows and what its keys do, without a terminal: rows of the tree, its
 * columns, the screen as a canvas. top_screen.h has the terminal, cmd_top.c the loop.
 */
#include "cli/term.h"
#include "cli/top/top_canvas.h"
#include "cli/top/top_model.h"

enum top_row_kind {
	TOP_ROW_JOB,
	TOP_ROW_PROCESS,
	TOP_ROW_THREAD,
};

/* A line of the table. */
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
	TOP_COLUMN_NAME, /* always there, on the left */
	TOP_COLUMN_RANK,
	TOP_COLUMN_PHASE, /* of a process; of a thread, its role */
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
	u32 width; /* of the name: at least */
	bool right;
	bool descending; /* the largest first */
	void (*cell)(const struct top_model *model, const struct top_row *row,
		     struct top_cell *ret);
	/* By which rows are sorted, below 0 where it is not known. NULL: by what is shown. */
	double (*value)(const struct top_model *model, const struct top_row *row);
};

extern const struct top_column top_columns[TOP_COLUMN_NR];

/* Where columns are in so many characters. The strip of phases has what they leave. */
struct top_layout {
	struct {
		enum top_column_id id;
		u32 x;
		u32 width;
	} at[TOP_COLUMN_NR];
	u32 nr;
	u32 strip_x;
	u32 strip_width; /* 0: no room for one */
};

/* Without the first `skip` columns beside the name. */
struct top_layout top_layout(u32 width, u32 skip);

enum top_mode {
	TOP_MODE_TABLE,
	TOP_MODE_FILTER, /* it is being typed */
	TOP_MODE_SORT,	 /* a column is being chosen */
	TOP_MODE_HELP,
};

#define TOP_FILTER_LEN 64

/* Who is selected, so that it stays so when rows come and go. */
struct top_identity {
	enum top_row_kind kind;
	u32 id;
	u64 start_ns;
	char cgroup[SNAPSHOT_TEXT_LEN];
};

struct top {
	struct top_model model;
	struct top_rows rows;
	enum top_mode mode;
	enum top_column_id sort;
	enum top_column_id choice; /* while one is being chosen */
	char filter[TOP_FILTER_LEN];
	bool paused;
	bool quit;
	u32 skip_columns;
	u32 selected; /* a row */
	struct top_identity identity;
	u32 first; /* the row at the top of the table */
	/* Where the table was drawn: what the mouse points at. */
	u32 table_y;
	u32 table_height;
	u32 width;
	char trouble[128]; /* with zerneld; empty: none */
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
	u32 x, y;      /* of the mouse */
};

void top_done(struct top *top);

/* Takes the snapshot over. While paused it is thrown away. */
int top_feed(struct top *top, struct snapshot *snapshot);

/* zerneld is gone, or says nothing; NULL: it is back. */
void top_trouble(struct top *top, const char *text);

int top_event(struct top *top, const struct top_event *event);

/* All of the canvas, whatever its size. */
void top_draw(struct top *top, struct canvas *canvas);

/* Parts of it: top_rows.c, top_header.c, top_table.c, top_help.c. */
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

/* What they are called where there is little room; a phase's letter is where there is no colour. */
char top_phase_letter(u32 phase);
const char *top_phase_word(u32 phase);
const char *top_role_word(u32 role);
const char *top_cause_word(u32 cause);
