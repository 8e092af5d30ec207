/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of zernel top as rows, filtered and sorted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "answers/job_text.h"
#include "base/cleanup.h"
#include "cli/top/top.h"

struct building {
	const struct top_model *model;
	enum top_column_id sort;
	const char *filter;
	bool *wanted; /* processes that pass the filter */
	struct top_rows *rows;
};

static int add_row(struct top_rows *rows, struct top_row row)
{
	if (rows->nr == rows->room) {
		u32 room = rows->room ? 2 * rows->room : 64;
		struct top_row *larger = reallocarray(rows->rows, room, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		rows->rows = larger;
		rows->room = room;
	}
	rows->rows[rows->nr++] = row;
	return 0;
}

static bool matches(const char *text, const char *filter)
{
	return strcasestr(text, filter);
}

/* Compares the filter with the pid, the name, the job, and the names of the threads. */
static bool process_matches(const struct snapshot *s, const struct snapshot_process *process,
			    const char *filter)
{
	const struct snapshot_job *job = snapshot_job(s, process);
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", process->pid);
	if (matches(pid, filter) || matches(process->comm, filter) ||
	    (job && (matches(job->name, filter) || matches(job_title(job).text, filter))))
		return true;
	for (u32 i = 0; i < s->nr_threads; i++)
		if (s->threads[i].pid == process->pid && matches(s->threads[i].comm, filter))
			return true;
	return false;
}

/* The index of the consumer of a loader process; nr_processes if it has no consumer. */
static u32 consumer_of(const struct snapshot *s, u32 index)
{
	u32 pid = s->processes[index].consumer_pid;

	for (u32 i = 0; pid && i < s->nr_processes; i++)
		if (s->processes[i].pid == pid && !s->processes[i].consumer_pid)
			return i;
	return s->nr_processes;
}

static void find_wanted(struct building *b)
{
	const struct snapshot *s = b->model->snapshot;

	for (u32 i = 0; i < s->nr_processes; i++)
		b->wanted[i] = process_matches(s, &s->processes[i], b->filter);
	/* A loader is shown below its consumer, so show the consumer, too. */
	for (u32 i = 0; i < s->nr_processes; i++) {
		u32 consumer = consumer_of(s, i);

		if (b->wanted[i] && consumer < s->nr_processes)
			b->wanted[consumer] = true;
	}
}

static int compare_numbers(double left, double right)
{
	return (left > right) - (left < right);
}

static double number_of(const struct snapshot *s, const struct top_row *row)
{
	switch (row->kind) {
	case TOP_ROW_PROCESS: return s->processes[row->index].pid;
	case TOP_ROW_THREAD: return s->threads[row->index].tid;
	case TOP_ROW_JOB: break;
	}
	return row->index;
}

/* Unknown values come last. Equal rows are sorted by rank, then by number. */
static int compare_rows(const void *left_row, const void *right_row, void *argument)
{
	const struct top_row *left = left_row, *right = right_row;
	const struct building *b = argument;
	const struct top_column *column = &top_columns[b->sort];
	const struct top_column *rank = &top_columns[TOP_COLUMN_RANK];
	int order = 0;

	if (column->value) {
		double l = column->value(b->model, left), r = column->value(b->model, right);

		order = (l < 0) - (r < 0);
		if (order == 0)
			order = column->descending ? compare_numbers(r, l) : compare_numbers(l, r);
	} else {
		struct top_cell l = {}, r = {};

		column->cell(b->model, left, &l);
		column->cell(b->model, right, &r);
		order = strverscmp(l.text, r.text);
	}
	if (order == 0)
		order = compare_numbers(rank->value(b->model, left), rank->value(b->model, right));
	if (order == 0)
		order = compare_numbers(number_of(b->model->snapshot, left),
					number_of(b->model->snapshot, right));
	return order;
}

/* Collects rows and sorts them. The caller adds their children. */
static int collect(struct building *b, bool (*belongs)(struct building *b, u32 index, u32 to),
		   u32 to, enum top_row_kind kind, u32 nr, u32 depth, struct top_rows *ret)
{
	int err = 0;

	for (u32 i = 0; err == 0 && i < nr; i++)
		if (belongs(b, i, to))
			err = add_row(ret, (struct top_row){ kind, i, depth, false, false });
	if (err < 0)
		return err;
	if (ret->nr)
		qsort_r(ret->rows, ret->nr, sizeof(*ret->rows), compare_rows, b);
	return 0;
}

static bool is_thread_of(struct building *b, u32 index, u32 to)
{
	const struct snapshot *s = b->model->snapshot;

	return s->threads[index].pid == s->processes[to].pid;
}

static bool is_loader_of(struct building *b, u32 index, u32 to)
{
	return b->wanted[index] && consumer_of(b->model->snapshot, index) == to;
}

/* `to` is the index of the job plus 1, as in a snapshot; 0: no job. */
static bool is_process_of(struct building *b, u32 index, u32 to)
{
	const struct snapshot *s = b->model->snapshot;

	return b->wanted[index] && s->processes[index].job == to &&
	       consumer_of(s, index) == s->nr_processes;
}

static bool is_job(struct building *b, u32 index, u32 to)
{
	for (u32 i = 0; i < b->model->snapshot->nr_processes; i++)
		if (is_process_of(b, i, index + 1))
			return true;
	return false;
}

static void rows_done(struct top_rows *rows)
{
	free(rows->rows);
}

#define CLEANUP_ROWS CLEANUP(rows_done)

static int add_process(struct building *b, struct top_row row)
{
	CLEANUP_ROWS struct top_rows loaders = {}, threads = {};
	const struct snapshot *s = b->model->snapshot;
	int err = collect(b, is_loader_of, row.index, TOP_ROW_PROCESS, s->nr_processes,
			  row.depth + 1, &loaders);

	if (err == 0)
		err = collect(b, is_thread_of, row.index, TOP_ROW_THREAD, s->nr_threads,
			      row.depth + 1, &threads);
	row.has_children = loaders.nr + threads.nr > 0;
	row.open = b->model->processes[row.index]->expanded;
	if (err == 0)
		err = add_row(b->rows, row);
	for (u32 i = 0; row.open && err == 0 && i < threads.nr; i++)
		err = add_row(b->rows, threads.rows[i]);
	for (u32 i = 0; row.open && err == 0 && i < loaders.nr; i++)
		err = add_process(b, loaders.rows[i]);
	return err;
}

static int add_processes(struct building *b, u32 job, u32 depth)
{
	CLEANUP_ROWS struct top_rows processes = {};
	int err = collect(b, is_process_of, job, TOP_ROW_PROCESS, b->model->snapshot->nr_processes,
			  depth, &processes);

	for (u32 i = 0; err == 0 && i < processes.nr; i++)
		err = add_process(b, processes.rows[i]);
	return err;
}

static int add_all(struct building *b)
{
	CLEANUP_ROWS struct top_rows jobs = {};
	int err = collect(b, is_job, 0, TOP_ROW_JOB, b->model->snapshot->nr_jobs, 0, &jobs);

	for (u32 i = 0; err == 0 && i < jobs.nr; i++) {
		struct top_row row = jobs.rows[i];

		row.has_children = true;
		row.open = !b->model->jobs[row.index].collapsed;
		err = add_row(b->rows, row);
		if (err == 0 && row.open)
			err = add_processes(b, row.index + 1, 1);
	}
	return err == 0 ? add_processes(b, 0, 0) : err;
}

int top_rows_build(struct top_rows *rows, const struct top_model *model, enum top_column_id sort,
		   const char *filter)
{
	CLEANUP_FREE bool *wanted = calloc(model->nr_processes + 1, sizeof(*wanted));
	struct building building = { model, sort, filter, wanted, rows };

	rows->nr = 0;
	if (!model->snapshot)
		return 0;
	if (!wanted)
		return -ENOMEM;
	find_wanted(&building);
	return add_all(&building);
}

void top_row_toggle(struct top_model *model, const struct top_row *row)
{
	switch (row->kind) {
	case TOP_ROW_JOB:
		model->jobs[row->index].collapsed = !model->jobs[row->index].collapsed;
		break;
	case TOP_ROW_PROCESS:
		model->processes[row->index]->expanded = !model->processes[row->index]->expanded;
		break;
	case TOP_ROW_THREAD: break;
	}
}

struct top_identity top_identity_of(const struct top_model *model, const struct top_row *row)
{
	const struct snapshot *s = model->snapshot;
	struct top_identity ret = { .kind = row->kind };

	switch (row->kind) {
	case TOP_ROW_JOB: memcpy(ret.cgroup, s->jobs[row->index].cgroup, sizeof(ret.cgroup)); break;
	case TOP_ROW_PROCESS:
		ret.id = s->processes[row->index].pid;
		ret.start_ns = s->processes[row->index].start_ns;
		break;
	case TOP_ROW_THREAD: ret.id = s->threads[row->index].tid; break;
	}
	return ret;
}
