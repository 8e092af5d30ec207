/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns of zernel top: their cells, sort keys and positions. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "answers/job_text.h"
#include "cli/term.h"
#include "cli/top/top.h"

/* In characters: width of the name, and minimum width of the strip. */
#define NAME_MIN     10
#define RANGE_POINTS 3 /* a wider range of the idle share is shown as a range */
#define NAME_MAX     28
#define STRIP_MIN    4
#define STRIP_WANTED 9
#define WIDE	     60

static const struct {
	char letter;
	const char *word;
} phases[PHASE_NR + 1] = {
	[PHASE_UNKNOWN] = { '.', "-" },	      [PHASE_DATA_LOADING] = { 'D', "data" },
	[PHASE_GPU_COMPUTE] = { 'G', "gpu" }, [PHASE_COLLECTIVE] = { 'C', "collect" },
	[PHASE_OPTIMIZER] = { 'O', "optim" }, [TOP_STRIP_GAP] = { ' ', "" },
};

char top_phase_letter(u32 phase)
{
	return phases[phase].letter;
}

const char *top_phase_word(u32 phase)
{
	return phases[phase].word;
}

const char *top_role_word(u32 role)
{
	static const char *const words[ROLE_NR] = {
		[ROLE_OTHER] = "other",
		[ROLE_LAUNCHER] = "launch",
		[ROLE_SYNC_WAITER] = "waiter",
		[ROLE_LOADER] = "loader",
		[ROLE_COLLECTIVE_HELPER] = "helper",
		[ROLE_CRITICAL] = "critical",
	};

	return role < ROLE_NR ? words[role] : "?";
}

const char *top_cause_word(u32 cause)
{
	static const char *const words[IDLE_CAUSE_NR] = {
		[IDLE_CPU] = "own cpu",		  [IDLE_RUNQUEUE] = "runqueue",
		[IDLE_LOADER_CPU] = "load cpu",	  [IDLE_LOADER_RUNQUEUE] = "load runq",
		[IDLE_LOADER_DISK] = "load disk", [IDLE_LOADER_OTHER] = "load else",
		[IDLE_COLLECTIVE] = "ranks",	  [IDLE_DISK] = "disk",
		[IDLE_MEMORY] = "memory",	  [IDLE_LOCK] = "lock",
		[IDLE_OTHER] = "other",
	};

	return cause < IDLE_CAUSE_NR ? words[cause] : "?";
}

/* NULL for a thread, which has no counters. */
static const struct top_counters *window_of(const struct top_model *model,
					    const struct top_row *row)
{
	switch (row->kind) {
	case TOP_ROW_JOB: return &model->jobs[row->index].window;
	case TOP_ROW_PROCESS: return &model->processes[row->index]->window;
	case TOP_ROW_THREAD: break;
	}
	return NULL;
}

/* "1.5 GiB" -> "1.5G" */
struct unit_text top_compact(struct unit_text from)
{
	struct unit_text ret = {};
	size_t used = 0;

	for (const char *at = from.text; *at && strcmp(at, "iB") != 0; at++)
		if (*at != ' ')
			ret.text[used++] = *at;
	return ret;
}

__attribute__((format(printf, 2, 3))) static void say(struct top_cell *ret, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ret->text, sizeof(ret->text), format, arguments);
	va_end(arguments);
}

/* Threads have no values: leave their cells empty. */
static void nothing(const struct top_row *row, struct top_cell *ret)
{
	if (row->kind != TOP_ROW_THREAD)
		say(ret, "-");
	ret->style = CANVAS_DIM;
}

static void name_cell(const struct top_model *model, const struct top_row *row,
		      struct top_cell *ret)
{
	const struct snapshot *s = model->snapshot;
	const char *marker = !row->has_children ? " " : row->open ? "-" : "+";
	int indent = (int)row->depth;

	switch (row->kind) {
	case TOP_ROW_JOB:
		say(ret, "%s %s", marker, job_title(&s->jobs[row->index]).text);
		ret->style = CANVAS_TITLE;
		break;
	case TOP_ROW_PROCESS:
		say(ret, "%*s%s %u %s%s", indent, "", marker, s->processes[row->index].pid,
		    snapshot_is_unproven(s, &s->processes[row->index]) ? "unproven: " : "",
		    s->processes[row->index].comm);
		break;
	case TOP_ROW_THREAD:
		say(ret, "%*s  %u %s", indent, "", s->threads[row->index].tid,
		    s->threads[row->index].comm);
		ret->style = CANVAS_DIM;
		break;
	}
}

static double rank_value(const struct top_model *model, const struct top_row *row)
{
	const struct snapshot_process *process;

	if (row->kind != TOP_ROW_PROCESS)
		return -1;
	process = &model->snapshot->processes[row->index];
	return process->nr_ranks ? process->rank : -1;
}

static void rank_cell(const struct top_model *model, const struct top_row *row,
		      struct top_cell *ret)
{
	double rank = rank_value(model, row);

	if (rank >= 0)
		say(ret, "%.0f", rank);
	else if (row->kind == TOP_ROW_PROCESS)
		nothing(row, ret);
}

static void phase_cell(const struct top_model *model, const struct top_row *row,
		       struct top_cell *ret)
{
	static const enum canvas_style styles[PHASE_NR] = {
		[PHASE_UNKNOWN] = CANVAS_DIM,	   [PHASE_DATA_LOADING] = CANVAS_WARNING,
		[PHASE_GPU_COMPUTE] = CANVAS_GOOD, [PHASE_COLLECTIVE] = CANVAS_TITLE,
		[PHASE_OPTIMIZER] = CANVAS_PLAIN,
	};
	u32 phase;

	switch (row->kind) {
	case TOP_ROW_JOB: say(ret, "%u proc", model->jobs[row->index].nr_processes); break;
	case TOP_ROW_PROCESS:
		phase = phase_of(model->snapshot->processes[row->index].phase);
		say(ret, "%s", top_phase_word(phase));
		ret->style = styles[phase];
		break;
	case TOP_ROW_THREAD:
		say(ret, "%s", top_role_word(model->snapshot->threads[row->index].role));
		break;
	}
}

static double watched(const struct top_counters *window)
{
	u32 cause;

	return (double)(top_idle_ns(window, &cause) + window->busy_ns);
}

static double idle_value(const struct top_model *model, const struct top_row *row)
{
	const struct top_counters *window = window_of(model, row);
	u32 cause;

	if (!window || watched(window) <= 0)
		return -1;
	return 100.0 * (double)top_idle_ns(window, &cause) / watched(window);
}

/* "43%", or "20-65" where the share is not known within RANGE_POINTS. */
static void idle_cell(const struct top_model *model, const struct top_row *row,
		      struct top_cell *ret)
{
	const struct top_counters *window = window_of(model, row);
	double idle = idle_value(model, row), watched_ns, min, max;

	if (idle < 0) {
		nothing(row, ret);
		return;
	}
	watched_ns = watched(window);
	min = 100.0 * (double)window->idle_min_ns / watched_ns;
	max = 100.0 * (double)window->idle_max_ns / watched_ns;
	if (max - min <= RANGE_POINTS)
		say(ret, "%.0f%%", idle);
	else
		say(ret, "%.0f-%.0f", min, min >= 9.5 && max > 99 ? 99 : max);
	ret->style = idle < 20 ? CANVAS_GOOD : idle < 50 ? CANVAS_WARNING : CANVAS_BAD;
}

static void cause_cell(const struct top_model *model, const struct top_row *row,
		       struct top_cell *ret)
{
	const struct top_counters *window = window_of(model, row);
	u32 cause;

	if (window && top_idle_ns(window, &cause))
		say(ret, "%s", top_cause_word(window->disagrees ? IDLE_CAUSE_NR : cause));
	else
		nothing(row, ret);
}

static void duration_cell(const struct top_row *row, double ns, struct top_cell *ret)
{
	if (ns < 0)
		nothing(row, ret);
	else
		say(ret, "%s", top_compact(unit_ns((u64)ns)).text);
}

static double step_value(const struct top_model *model, const struct top_row *row)
{
	const struct top_counters *window = window_of(model, row);

	return window && window->nr_timed_steps
		       ? (double)window->timed_steps_ns / (double)window->nr_timed_steps
		       : -1;
}

/* The basis of steps, as one letter: see the help of the column. */
static char basis_letter(u32 bases)
{
	switch (bases) {
	case 0: return ' ';
	case 1U << STEP_BASIS_SYNC: return 's';
	case 1U << STEP_BASIS_ITERATION: return 'i';
	case 1U << STEP_BASIS_OPTIMIZER: return 'o';
	default: return '*';
	}
}

static void step_cell(const struct top_model *model, const struct top_row *row,
		      struct top_cell *ret)
{
	double ns = step_value(model, row);

	if (ns < 0)
		nothing(row, ret);
	else
		say(ret, "%s %c", top_compact(unit_ns((u64)ns)).text,
		    basis_letter(window_of(model, row)->step_bases));
}

static double rate_value(const struct top_model *model, const struct top_row *row)
{
	const struct top_counters *window = window_of(model, row);

	return window && window->nr_steps && window->time_ns
		       ? (double)window->nr_steps * 1e9 / (double)window->time_ns
		       : -1;
}

static void rate_cell(const struct top_model *model, const struct top_row *row,
		      struct top_cell *ret)
{
	double rate = rate_value(model, row);

	if (rate < 0)
		nothing(row, ret);
	else
		say(ret, "%.*f", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
}

static double wait_value(const struct top_model *model, const struct top_row *row)
{
	const struct top_counters *window = window_of(model, row);

	return window && window->runqueue_wait.count
		       ? (double)hist_quantile(&window->runqueue_wait, 990)
		       : -1;
}

static void wait_cell(const struct top_model *model, const struct top_row *row,
		      struct top_cell *ret)
{
	duration_cell(row, wait_value(model, row), ret);
}

static double memory_value(const struct top_model *model, const struct top_row *row)
{
	switch (row->kind) {
	case TOP_ROW_JOB: return (double)model->jobs[row->index].memory_bytes;
	case TOP_ROW_PROCESS: return (double)model->processes[row->index]->memory_bytes;
	case TOP_ROW_THREAD: break;
	}
	return 0;
}

static void memory_cell(const struct top_model *model, const struct top_row *row,
			struct top_cell *ret)
{
	double bytes = memory_value(model, row);

	if (bytes > 0)
		say(ret, "%s", top_compact(unit_bytes((u64)bytes)).text);
	else
		nothing(row, ret);
}

/* clang-format off */
const struct top_column top_columns[TOP_COLUMN_NR] = {
	[TOP_COLUMN_NAME]   = { "JOB, PROCESS", "job, process, thread", NAME_MIN,
				.cell = name_cell },
	[TOP_COLUMN_RANK]   = { "RANK", "rank in a distributed job", 4, true,
				.cell = rank_cell, .value = rank_value },
	[TOP_COLUMN_PHASE]  = { "PHASE", "current phase; role of a thread", 7,
				.cell = phase_cell },
	[TOP_COLUMN_IDLE]   = { "IDLE", "share of time the GPU is idle", 5, true, true,
				.cell = idle_cell, .value = idle_value },
	[TOP_COLUMN_CAUSE]  = { "BECAUSE", "largest cause of idle time", 9,
				.cell = cause_cell },
	[TOP_COLUMN_STEP]   = { "STEP", "step time; s sync, i iter, o opt", 8, true, true,
				.cell = step_cell, .value = step_value },
	[TOP_COLUMN_RATE]   = { "STP/S", "steps per second", 5, true, true,
				.cell = rate_cell, .value = rate_value },
	[TOP_COLUMN_WAIT]   = { "RUNQ99", "p99 of waits in a run queue", 7, true, true,
				.cell = wait_cell, .value = wait_value },
	[TOP_COLUMN_MEMORY] = { "MEMORY", "GPU memory in use", 7, true, true,
				.cell = memory_cell, .value = memory_value },
};
/* clang-format on */

struct top_layout top_layout(u32 width, u32 skip)
{
	u32 name = width / 4 < NAME_MIN + 2 ? NAME_MIN : width / 4 - 2;
	u32 strip = width >= WIDE ? STRIP_WANTED + 1 : 0;
	struct top_layout layout = { .nr = 1 };
	u32 x;

	layout.at[0].width = name > NAME_MAX ? NAME_MAX : name;
	x = layout.at[0].width;
	for (u32 id = TOP_COLUMN_NAME + 1 + skip; id < TOP_COLUMN_NR; id++) {
		if (x + 1 + top_columns[id].width + strip > width)
			break;
		layout.at[layout.nr].id = id;
		layout.at[layout.nr].x = x + 1;
		layout.at[layout.nr++].width = top_columns[id].width;
		x += 1 + top_columns[id].width;
	}
	if (x + 1 + STRIP_MIN <= width) {
		layout.strip_x = x + 1;
		layout.strip_width = width - x - 1;
	}
	return layout;
}
