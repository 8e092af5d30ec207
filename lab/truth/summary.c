/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "truth/summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct span {
	u64 start_ns;
	u64 end_ns;
};

static int u64_cmp(const void *left, const void *right)
{
	u64 l = *(const u64 *)left, r = *(const u64 *)right;

	return (l > r) - (l < r);
}

/* The first member of a span is its start, so spans sort by start. */
static int span_cmp(const void *left, const void *right)
{
	return u64_cmp(left, right);
}

struct truth_quantiles truth_quantiles_of(u64 *values_ns, u64 nr)
{
	struct truth_quantiles ret = { .nr = nr };
	double sum = 0;
	u64 p99 = nr * 99 / 100;

	if (nr == 0)
		return ret;
	qsort(values_ns, nr, sizeof(*values_ns), u64_cmp);
	for (u64 i = 0; i < nr; i++)
		sum += (double)values_ns[i];
	ret.mean_ms = sum / (double)nr / NSEC_PER_MSEC;
	ret.p50_ms = (double)values_ns[nr / 2] / NSEC_PER_MSEC;
	ret.p99_ms = (double)values_ns[p99 < nr ? p99 : nr - 1] / NSEC_PER_MSEC;
	return ret;
}

/* Sorts `spans`; returns the length of their union within `window`. */
static u64 union_ns(struct span *spans, u64 nr, struct span window)
{
	u64 total = 0, at = window.start_ns;

	qsort(spans, nr, sizeof(*spans), span_cmp);
	for (u64 i = 0; i < nr; i++) {
		u64 start = spans[i].start_ns > at ? spans[i].start_ns : at;
		u64 end = spans[i].end_ns < window.end_ns ? spans[i].end_ns : window.end_ns;

		if (end > start) {
			total += end - start;
			at = end;
		}
	}
	return total;
}

/* Data from all logs of one process, before it is summarized. */
struct gather {
	u64 *steps_ns, *ttfts_ns;
	struct span *busy;
	u64 nr_steps, nr_ttfts, nr_busy;
	u64 all_phases_ns[PHASE_NR], launcher_phases_ns[PHASE_NR];
	bool has_launcher, has_phases;
	struct span window;
};

static void gather_done(struct gather *gather)
{
	free(gather->steps_ns);
	free(gather->ttfts_ns);
	free(gather->busy);
}

static int gather_init(struct gather *gather, u64 nr_records)
{
	gather->steps_ns = malloc((nr_records + 1) * sizeof(u64));
	gather->ttfts_ns = malloc((nr_records + 1) * sizeof(u64));
	gather->busy = malloc((nr_records + 1) * sizeof(struct span));
	gather->window.start_ns = ~0ULL;
	return gather->steps_ns && gather->ttfts_ns && gather->busy ? 0 : -ENOMEM;
}

static void window_grow(struct span *window, u64 start_ns, u64 end_ns)
{
	if (start_ns < window->start_ns)
		window->start_ns = start_ns;
	if (end_ns > window->end_ns)
		window->end_ns = end_ns;
}

/* Returns the launcher thread, or 0 if the log contains no launcher. */
static u32 launcher_of(const struct truth_file *file)
{
	for (u64 i = 0; i < file->nr_records; i++)
		if (file->records[i].kind == TRUTH_THREAD &&
		    file->records[i].sub == TRUTH_ROLE_LAUNCHER)
			return file->records[i].tid;
	return 0;
}

static void gather_record(struct gather *gather, const struct truth_record *rec, u32 launcher)
{
	u64 ns = rec->end_ns - rec->start_ns;

	switch (rec->kind) {
	case TRUTH_STEP:
		gather->steps_ns[gather->nr_steps++] = ns;
		window_grow(&gather->window, rec->start_ns, rec->end_ns);
		break;
	case TRUTH_REQUEST:
		gather->ttfts_ns[gather->nr_ttfts++] = ns;
		window_grow(&gather->window, rec->start_ns, rec->b);
		break;
	case TRUTH_BUSY:
		gather->busy[gather->nr_busy++] = (struct span){ rec->start_ns, rec->end_ns };
		break;
	case TRUTH_PHASE:
		gather->has_phases = true;
		gather->all_phases_ns[phase_of(rec->sub)] += ns;
		if (launcher && rec->tid == launcher) {
			gather->has_launcher = true;
			gather->launcher_phases_ns[phase_of(rec->sub)] += ns;
		}
		break;
	}
}

int truth_summarise_pid(const struct truth_dir *dir, u32 pid, struct truth_summary *ret)
{
	struct truth_summary summary = { .pid = pid };
	struct gather gather = {};
	u64 nr_records = 0;
	int r;

	for (u64 i = 0; i < dir->nr_files; i++)
		if (dir->files[i].header.pid == pid)
			nr_records += dir->files[i].nr_records;
	r = gather_init(&gather, nr_records);
	for (u64 i = 0; i < dir->nr_files && r == 0; i++) {
		const struct truth_file *file = &dir->files[i];
		u32 launcher = launcher_of(file);

		for (u64 j = 0; j < file->nr_records && file->header.pid == pid; j++)
			gather_record(&gather, &file->records[j], launcher);
	}
	if (r == 0 && !gather.nr_steps && !gather.nr_ttfts && !gather.has_phases)
		r = -ENOENT;
	if (r == 0) {
		summary.steps = truth_quantiles_of(gather.steps_ns, gather.nr_steps);
		summary.ttft = truth_quantiles_of(gather.ttfts_ns, gather.nr_ttfts);
		for (int i = 0; i < PHASE_NR; i++)
			summary.phase_ns[i] = gather.has_launcher ? gather.launcher_phases_ns[i]
								  : gather.all_phases_ns[i];
		if (gather.window.end_ns > gather.window.start_ns) {
			summary.window_ns = gather.window.end_ns - gather.window.start_ns;
			summary.busy_ns = union_ns(gather.busy, gather.nr_busy, gather.window);
		}
		*ret = summary;
	}
	gather_done(&gather);
	return r;
}

int truth_summarise(const struct truth_dir *dir, struct truth_summary **ret, u64 *ret_nr)
{
	struct truth_summary *summaries = calloc(dir->nr_files + 1, sizeof(*summaries));
	u64 *pids = calloc(dir->nr_files + 1, sizeof(*pids));
	u64 nr = 0;
	int r = summaries && pids ? 0 : -ENOMEM;

	for (u64 i = 0; i < dir->nr_files && r == 0; i++)
		pids[i] = dir->files[i].header.pid;
	if (r == 0)
		qsort(pids, dir->nr_files, sizeof(*pids), u64_cmp);
	for (u64 i = 0; i < dir->nr_files && r == 0; i++) {
		if (i > 0 && pids[i] == pids[i - 1])
			continue;
		r = truth_summarise_pid(dir, (u32)pids[i], &summaries[nr]);
		nr += r == 0;
		if (r == -ENOENT)
			r = 0;
	}
	free(pids);
	if (r < 0) {
		free(summaries);
		return r;
	}
	*ret = summaries;
	*ret_nr = nr;
	return 0;
}

void truth_print_busy(const struct truth_summary *summary)
{
	if (summary->window_ns)
		printf("%.4f", (double)summary->busy_ns / (double)summary->window_ns);
	else
		printf("null");
}
