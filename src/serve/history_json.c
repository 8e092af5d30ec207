/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers a question about the history: one array for each value of each rank. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "serve/history_ranks.h"

#define SPAN_DEFAULT_S 900

/* The slots of an answer. */
struct grid {
	u64 since;
	u64 until;
	u32 step;
	u32 nr;
	enum rank_resolution level;
};

/* The sums of one slot of an answer. */
struct cell {
	u64 values[RANK_VALUE_NR];
	u64 memory_mib;
	bool is_set;
};

static bool is_asked_for(const struct rank *rank, const struct rank_query *query)
{
	return !query->job || strcmp(rank->job, query->job) == 0;
}

static u64 round_up(u64 value, u64 unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Chooses the finest step for which there is data and room. */
static struct grid make_grid(const struct rank_history *history, const struct rank_query *query)
{
	const struct rank_level_row *fine = &rank_levels[RESOLUTION_FINE];
	const struct rank_level_row *coarse = &rank_levels[RESOLUTION_COARSE];
	u64 now = history->now_ms / 1000 + 1,
	    oldest = now > coarse->span_s ? now - coarse->span_s : 0;
	struct grid grid = { .until = query->until && query->until < now ? query->until : now };
	u64 span, step = query->step ? query->step : fine->step_s, nr_ranks = 0, least;

	grid.since = query->since;
	if (!grid.since)
		grid.since = grid.until > SPAN_DEFAULT_S ? grid.until - SPAN_DEFAULT_S : 0;
	if (grid.since < oldest)
		grid.since = oldest;
	if (grid.since > grid.until)
		grid.since = grid.until;
	for (u32 i = 0; i < history->nr; i++)
		nr_ranks += is_asked_for(history->ranks[i], query);
	span = grid.until - grid.since;
	least = (span * nr_ranks + RANK_HISTORY_POINTS_MAX - 1) / RANK_HISTORY_POINTS_MAX;
	if (step < least)
		step = least;
	if (now - grid.since > fine->span_s + fine->step_s || step >= coarse->step_s)
		step = round_up(step, coarse->step_s);
	grid.step = (u32)step;
	grid.level = step < coarse->step_s ? RESOLUTION_FINE : RESOLUTION_COARSE;
	grid.since -= grid.since % step;
	grid.nr = (u32)(round_up(grid.until - grid.since, step) / step);
	return grid;
}

static void add_slot(struct cell *cell, const struct rank_slot *slot)
{
	for (u32 i = 0; i < RANK_VALUE_NR; i++)
		cell->values[i] += slot->values[i];
	if (slot->memory_mib > cell->memory_mib)
		cell->memory_mib = slot->memory_mib;
	cell->is_set = true;
}

/* Fills the cells. Returns the first one, and one past the last one, that have data. */
static void sum_slots(const struct rank *rank, const struct grid *grid, struct cell *cells,
		      u32 *ret_first, u32 *ret_end)
{
	*ret_first = *ret_end = 0;
	memset(cells, 0, grid->nr * sizeof(*cells));
	for (const struct rank_chunk *chunk = rank->lanes[grid->level].first; chunk;
	     chunk = chunk->next)
		for (u32 i = 0; i < chunk->nr; i++) {
			const struct rank_slot *slot = &chunk->slots[i];
			u32 at;

			if (slot->time_s < grid->since || slot->time_s >= grid->until)
				continue;
			at = (u32)((slot->time_s - grid->since) / grid->step);
			add_slot(&cells[at], slot);
			if (!*ret_end)
				*ret_first = at;
			*ret_end = at + 1;
		}
}

/* What is written of a cell. */
typedef u64 (*column_fn)(const struct cell *cell, u32 value);

static u64 get_ms(const struct cell *cell, u32 value)
{
	return (cell->values[value] + 500) / 1000;
}

static u64 get_number(const struct cell *cell, u32 value)
{
	return cell->values[value];
}

static u64 get_memory(const struct cell *cell, u32 value)
{
	return cell->memory_mib;
}

/* The mean time of a step. */
static u64 get_step_us(const struct cell *cell, u32 value)
{
	u64 nr = cell->values[RANK_STEPS];

	return nr ? cell->values[RANK_STEP_TIME] / nr : 0;
}

/* The unknown phase has the rest of the time. */
static u64 get_unknown_ms(const struct cell *cell, u32 value)
{
	u64 known = 0;

	for (u32 i = RANK_PHASE_FIRST; i < RANK_VALUE_NR; i++)
		known += cell->values[i];
	return cell->values[RANK_SPAN] > known ? (cell->values[RANK_SPAN] - known + 500) / 1000 : 0;
}

struct column {
	const struct cell *cells;
	u32 nr;
};

static void add_column(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
		       const struct column *column, column_fn get, u32 value)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, key);

	for (u32 i = 0; i < column->nr; i++)
		if (column->cells[i].is_set)
			yyjson_mut_arr_add_uint(doc, list, get(&column->cells[i], value));
		else
			yyjson_mut_arr_add_null(doc, list);
}

/* Leaves out a cause or a phase that does not occur. */
static void add_column_if_any(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
			      const struct column *column, column_fn get, u32 value)
{
	for (u32 i = 0; i < column->nr; i++)
		if (column->cells[i].is_set && get(&column->cells[i], value)) {
			add_column(doc, object, key, column, get, value);
			return;
		}
}

static void add_columns(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct column *column)
{
	yyjson_mut_val *part;

	add_column(doc, object, "span_ms", column, get_ms, RANK_SPAN);
	add_column(doc, object, "busy_ms", column, get_ms, RANK_BUSY);
	add_column(doc, object, "open_ms", column, get_ms, RANK_OPEN);
	part = yyjson_mut_obj_add_obj(doc, object, "idle_ms");
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		add_column_if_any(doc, part, idle_cause_label(cause), column, get_ms,
				  RANK_IDLE_FIRST + cause);
	part = yyjson_mut_obj_add_obj(doc, object, "phase_ms");
	add_column_if_any(doc, part, phase_label(PHASE_UNKNOWN), column, get_unknown_ms, 0);
	for (u32 phase = 1; phase < PHASE_NR; phase++)
		add_column_if_any(doc, part, phase_label(phase), column, get_ms,
				  RANK_PHASE_FIRST + phase - 1);
	add_column(doc, object, "steps", column, get_number, RANK_STEPS);
	add_column(doc, object, "step_us", column, get_step_us, 0);
	add_column(doc, object, "memory_mib", column, get_memory, 0);
}

static void add_rank(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct rank *rank, u32 from,
		     const struct column *column)
{
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);

	yyjson_mut_obj_add_str(doc, object, "job", rank->job);
	yyjson_mut_obj_add_str(doc, object, "name", rank->name);
	yyjson_mut_obj_add_uint(doc, object, "pid", rank->pid);
	yyjson_mut_obj_add_uint(doc, object, "start_ns", rank->start_ns);
	yyjson_mut_obj_add_str(doc, object, "comm", rank->comm);
	if (rank->nr_ranks)
		yyjson_mut_obj_add_int(doc, object, "rank", rank->rank);
	else
		yyjson_mut_obj_add_null(doc, object, "rank");
	yyjson_mut_obj_add_uint(doc, object, "nr_ranks", rank->nr_ranks);
	if (rank->gpu == SNAPSHOT_GPU_UNKNOWN)
		yyjson_mut_obj_add_null(doc, object, "gpu");
	else
		yyjson_mut_obj_add_uint(doc, object, "gpu", rank->gpu);
	yyjson_mut_obj_add_bool(doc, object, "present", rank->is_present);
	yyjson_mut_obj_add_uint(doc, object, "from", from);
	add_columns(doc, object, column);
}

/* The oldest time that is kept of any rank. */
static u64 kept_since(const struct rank_history *history)
{
	u64 oldest = history->now_ms / 1000;

	for (u32 i = 0; i < history->nr; i++)
		for (u32 level = 0; level < RESOLUTION_NR; level++) {
			const struct rank_chunk *chunk = history->ranks[i]->lanes[level].first;

			if (chunk && chunk->slots[0].time_s < oldest)
				oldest = chunk->slots[0].time_s;
		}
	return oldest;
}

static int add_history(yyjson_mut_doc *doc, yyjson_mut_val *root, yyjson_mut_val *list,
		       const struct rank_history *history, const struct rank_query *query)
{
	struct grid grid = make_grid(history, query);
	CLEANUP_FREE struct cell *cells = calloc(grid.nr + 1, sizeof(*cells));
	u32 first, end;

	if (!cells)
		return -ENOMEM;
	yyjson_mut_obj_add_uint(doc, root, "since", grid.since);
	yyjson_mut_obj_add_uint(doc, root, "until", grid.until);
	yyjson_mut_obj_add_uint(doc, root, "step", grid.step);
	yyjson_mut_obj_add_uint(doc, root, "kept_since", kept_since(history));
	yyjson_mut_obj_add_uint(doc, root, "thinned", history->nr_thinned);
	for (u32 i = 0; i < history->nr; i++) {
		const struct rank *rank = history->ranks[i];

		if (!is_asked_for(rank, query))
			continue;
		sum_slots(rank, &grid, cells, &first, &end);
		if (end)
			add_rank(doc, list, rank, first,
				 &(struct column){ cells + first, end - first });
	}
	return 0;
}

int rank_history_to_json(const struct rank_history *history, const struct rank_query *query,
			 char **ret, size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
	char *text = NULL;
	int err;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_bool(doc, root, "enabled", history != NULL);
	err = history ? add_history(doc, root, list, history, query) : 0;
	yyjson_mut_obj_add_val(doc, root, "ranks", list);
	if (err == 0)
		text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
