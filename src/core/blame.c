/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/blame.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct snapshot_process *blame_find(const struct snapshot *s, u32 pid, u64 start_ns)
{
	for (u32 i = 0; i < s->nr_processes; i++)
		if (s->processes[i].pid == pid && s->processes[i].start_ns == start_ns)
			return &s->processes[i];
	return NULL;
}

u32 blame_permille(u64 part, u64 whole)
{
	/* A larger part could overflow. In nanoseconds it would be more than 100 days. */
	if (whole == 0 || part > ~0ULL / 2000)
		return 0;
	return (u32)((part * 1000 + whole / 2) / whole);
}

/* False if the counter decreased. */
static bool subtract(u64 now, u64 before, u64 *ret)
{
	*ret = now - before;
	return now >= before;
}

static void blame_idle(const struct snapshot *before, const struct snapshot *after,
		       const struct snapshot_process *then, const struct idle_span *span,
		       struct blame *blame)
{
	struct gpu_use use_then = gpu_use_of(before, then);
	struct gpu_use use_now = gpu_use_of(after, blame->process);
	struct gpu_use_bounds use;
	bool has_use = gpu_use_between(&use_then, &use_now, &use);
	struct idle_share share = idle_share_of(span, has_use ? &use : NULL);

	blame->busy_ns = share.watched_ns - share.idle_ns;
	blame->idle_ns = share.idle_ns;
	blame->idle_min_ns = share.min_ns;
	blame->idle_max_ns = share.max_ns;
	memcpy(blame->cause_ns, share.cause_ns, sizeof(blame->cause_ns));
	blame->launching_ns = share.launching_ns;
	blame->is_measured = share.is_measured;
	blame->disagrees = share.disagrees;
	blame->counter_idle_ns = share.counter_ns;
}

/* A rank of a pipeline sends and receives more often than it meets all ranks. */
static bool is_stage(const struct snapshot_process *then, const struct snapshot_process *now)
{
	u64 nr_pairs = 0, nr_all = 0;

	for (u32 i = 0; i < COLLECTIVE_NR; i++) {
		u32 operation = COLLECTIVE_FIRST + i;
		u64 nr;

		if (!subtract(now->collectives.nr[i], then->collectives.nr[i], &nr))
			continue;
		if (operation == DETAIL_SEND || operation == DETAIL_RECV)
			nr_pairs += nr;
		else
			nr_all += nr;
	}
	return nr_pairs > nr_all;
}

static void blame_ranks(const struct snapshot *before, const struct snapshot *after,
			const struct snapshot_process *then, struct blame *blame)
{
	const struct snapshot_process *process = blame->process;

	if (process->nr_ranks < 2)
		return;
	blame->is_stage = is_stage(then, process);
	blame->has_active = gpu_active_between(before, after, process, &blame->activity);
	if (!blame->activity.busy_ns)
		blame->activity.busy_ns = blame->busy_ns;
	blame->waited = WAITED_AT_MOST;
	blame->waited_ns =
		blame->collective_ns < blame->busy_ns ? blame->collective_ns : blame->busy_ns;
}

/* What was recorded in the span. Empty if it is not known. */
static void blame_hist(const struct snapshot *before, const struct snapshot *after,
		       const struct snapshot_process *then, const struct snapshot_process *now,
		       u32 kind, struct hist *ret)
{
	const struct hist *old = snapshot_hist(before, &then->hists, kind);
	const struct hist *new = snapshot_hist(after, &now->hists, kind);
	const struct hist none = {};

	if (new)
		hist_subtract(new, old ? old : &none, ret);
}

/*
 * The time of a culprit up to `then`. A snapshot lists only the largest culprits. A culprit that
 * was not listed may have had as much time as the smallest one in a full list. Subtracting that
 * bound leaves only time that is certain.
 */
static u64 culprit_before(const struct snapshot_process *then, const struct snapshot_culprit *now)
{
	u64 least_ns = then->nr_culprits == CULPRITS_MAX ? ~0ULL : 0;

	for (u32 i = 0; i < then->nr_culprits; i++) {
		const struct snapshot_culprit *each = &then->culprits[i];

		if (each->cause == now->cause && strcmp(each->name, now->name) == 0)
			return each->ns;
		if (each->ns < least_ns)
			least_ns = each->ns;
	}
	return least_ns;
}

static int compare_culprits(const void *a, const void *b)
{
	const struct snapshot_culprit *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return strcmp(x->name, y->name);
}

/*
 * A culprit delayed the launcher while the GPU was idle or may have been. It gets the part of
 * this time in which the GPU was idle.
 */
static u64 culprit_part(const struct idle_span *span, const struct blame *blame, u32 cause, u64 ns)
{
	u64 all_ns = span->idle_ns[cause] + span->open_ns[cause];
	u64 idle_ns = blame->cause_ns[cause];

	if (all_ns > idle_ns)
		ns = (u64)((unsigned __int128)ns * idle_ns / all_ns);
	return ns < idle_ns ? ns : idle_ns;
}

static void blame_culprits(const struct snapshot_process *then, const struct idle_span *span,
			   struct blame *blame)
{
	const struct snapshot_process *process = blame->process;

	for (u32 i = 0; i < process->nr_culprits; i++) {
		struct snapshot_culprit culprit = process->culprits[i];

		if (culprit.cause >= IDLE_CAUSE_NR ||
		    !subtract(culprit.ns, culprit_before(then, &culprit), &culprit.ns))
			continue;
		culprit.ns = culprit_part(span, blame, culprit.cause, culprit.ns);
		if (culprit.ns > 0)
			blame->culprits[blame->nr_culprits++] = culprit;
	}
	qsort(blame->culprits, blame->nr_culprits, sizeof(blame->culprits[0]), compare_culprits);
}

int blame_process(const struct snapshot *before, const struct snapshot *after,
		  const struct snapshot_process *process, struct blame *ret)
{
	const struct snapshot_process *then = blame_find(before, process->pid, process->start_ns);
	struct blame blame = { .process = process };
	struct idle_span span;

	if (!then)
		return -ESRCH;
	if (!subtract(after->monotonic_ns, before->monotonic_ns, &blame.wall_ns) ||
	    blame.wall_ns == 0 || !idle_span_between(then, process, &span) ||
	    !subtract(process->phase_ns[PHASE_COLLECTIVE], then->phase_ns[PHASE_COLLECTIVE],
		      &blame.collective_ns))
		return -ESTALE;
	span.wall_ns = blame.wall_ns;
	blame_idle(before, after, then, &span, &blame);
	blame_ranks(before, after, then, &blame);
	if (!subtract(process->nr_steps, then->nr_steps, &blame.nr_steps))
		blame.nr_steps = 0;
	blame_hist(before, after, then, process, HIST_STEP, &blame.steps);
	blame_hist(before, after, then, process, HIST_IDLE, &blame.idle_spans);
	blame_culprits(then, &span, &blame);
	*ret = blame;
	return 0;
}

u32 blame_largest_cause(const struct blame *blame)
{
	u32 largest = IDLE_CAUSE_NR;

	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		if (blame->cause_ns[cause] > 0 &&
		    (largest == IDLE_CAUSE_NR || blame->cause_ns[cause] > blame->cause_ns[largest]))
			largest = cause;
	return largest;
}
