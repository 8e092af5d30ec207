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

static const struct snapshot_gpu *find_gpu(const struct snapshot *s, u32 number)
{
	for (u32 i = 0; i < s->nr_gpus; i++)
		if (s->gpus[i].gpu == number)
			return &s->gpus[i];
	return NULL;
}

/*
 * The time for which the multiprocessors of a GPU were active. The GPU is not sampled at the
 * times of the snapshots, so the active share between its samples is scaled to the span.
 */
static bool active_between(const struct snapshot *before, const struct snapshot *after, u32 number,
			   u64 *ret)
{
	const struct snapshot_gpu *then = find_gpu(before, number), *now = find_gpu(after, number);
	u64 active_ns, looked_ns;

	if (!then || !now || !(then->valid & now->valid & SNAPSHOT_GPU_ACTIVE) ||
	    !subtract(now->active_ns, then->active_ns, &active_ns) ||
	    !subtract(now->active_at_ns, then->active_at_ns, &looked_ns) || !looked_ns)
		return false;
	*ret = (u64)((double)active_ns / (double)looked_ns *
		     (double)(after->monotonic_ns - before->monotonic_ns));
	return true;
}

/* A process whose GPU is unknown may use any GPU. */
static bool may_use_gpu(const struct snapshot_process *process, u32 number)
{
	for (u32 i = 0; i < process->nr_memory; i++)
		if (process->memory[i].gpu == number ||
		    process->memory[i].gpu == SNAPSHOT_GPU_UNKNOWN)
			return true;
	return false;
}

/*
 * The activity of a GPU is the sum over all its users. It describes a process only if the
 * process uses exactly one GPU and no other process may use that GPU.
 */
static bool has_gpu_alone(const struct snapshot *s, const struct snapshot_process *process)
{
	u32 nr = 0;

	if (process->nr_memory != 1 || process->memory[0].gpu == SNAPSHOT_GPU_UNKNOWN)
		return false;
	for (u32 i = 0; i < s->nr_processes; i++)
		nr += may_use_gpu(&s->processes[i], process->memory[0].gpu);
	return nr == 1;
}

/* A collective waits for other ranks on the GPU, so the GPU is busy but not active meanwhile. */
static void blame_waiting(const struct snapshot *before, const struct snapshot *after,
			  struct blame *blame)
{
	const struct snapshot_process *process = blame->process;
	u64 active_ns;

	if (process->nr_ranks < 2)
		return;
	blame->waited = WAITED_AT_MOST;
	blame->waited_ns = blame->collective_ns;
	if (has_gpu_alone(after, process) &&
	    active_between(before, after, process->memory[0].gpu, &active_ns)) {
		u64 waited_ns = blame->busy_ns > active_ns ? blame->busy_ns - active_ns : 0;

		blame->waited = WAITED_MEASURED;
		blame->waited_ns =
			waited_ns < blame->collective_ns ? waited_ns : blame->collective_ns;
	}
	if (blame->waited_ns > blame->busy_ns)
		blame->waited_ns = blame->busy_ns;
}

static void blame_steps(const struct snapshot *before, const struct snapshot *after,
			const struct snapshot_process *then, struct blame *blame)
{
	const struct hist *old = snapshot_hist(before, &then->hists, HIST_STEP);
	const struct hist *new = snapshot_hist(after, &blame->process->hists, HIST_STEP);
	const struct hist none = {};

	if (!subtract(blame->process->nr_steps, then->nr_steps, &blame->nr_steps))
		blame->nr_steps = 0;
	if (new)
		hist_subtract(new, old ? old : &none, &blame->steps);
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

static void blame_culprits(const struct snapshot_process *then, struct blame *blame)
{
	const struct snapshot_process *process = blame->process;

	for (u32 i = 0; i < process->nr_culprits; i++) {
		struct snapshot_culprit culprit = process->culprits[i];

		if (culprit.cause >= IDLE_CAUSE_NR ||
		    !subtract(culprit.ns, culprit_before(then, &culprit), &culprit.ns))
			continue;
		if (culprit.ns > blame->cause_ns[culprit.cause])
			culprit.ns = blame->cause_ns[culprit.cause];
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

	if (!then)
		return -ESRCH;
	if (!subtract(after->monotonic_ns, before->monotonic_ns, &blame.wall_ns) ||
	    blame.wall_ns == 0 || !subtract(process->busy_ns, then->busy_ns, &blame.busy_ns))
		return -ESTALE;
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++) {
		if (!subtract(process->idle_ns[cause], then->idle_ns[cause],
			      &blame.cause_ns[cause]))
			return -ESTALE;
		blame.idle_ns += blame.cause_ns[cause];
	}
	if (!subtract(process->phase_ns[PHASE_COLLECTIVE], then->phase_ns[PHASE_COLLECTIVE],
		      &blame.collective_ns))
		return -ESTALE;
	blame_waiting(before, after, &blame);
	blame_steps(before, after, then, &blame);
	blame_culprits(then, &blame);
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

static bool same_job(const struct blame *a, const struct blame *b)
{
	return a->process->job == b->process->job && a->process->nr_ranks == b->process->nr_ranks;
}

/* All ranks use the same measure: if one rank has only an upper bound, bounds are compared. */
static u64 time_in_collectives(const struct blame *blame, u32 measure)
{
	return measure == WAITED_MEASURED ? blame->waited_ns : blame->collective_ns;
}

/* The place of a rank in the order by wait time, from 0. On a tie, the lower index is first. */
static u32 place_of(const struct blame *blames, u32 nr, u32 at, u32 measure)
{
	u64 its = time_in_collectives(&blames[at], measure);
	u32 place = 0;

	for (u32 i = 0; i < nr; i++) {
		u64 other;

		if (i == at || !same_job(&blames[i], &blames[at]))
			continue;
		other = time_in_collectives(&blames[i], measure);
		place += other < its || (other == its && i < at);
	}
	return place;
}

int blame_find_straggler(const struct blame *blames, u32 nr, u32 of, struct blame_straggler *ret)
{
	u32 measure = WAITED_MEASURED, nr_ranks = 0, least = of, middle = of;
	u64 lead_ns;

	for (u32 i = 0; i < nr; i++) {
		if (!same_job(&blames[i], &blames[of]))
			continue;
		nr_ranks++;
		measure = blames[i].waited < measure ? blames[i].waited : measure;
	}
	if (nr_ranks < 2 || measure == WAITED_UNKNOWN)
		return -ENOENT;
	/* Places 1 to nr_ranks - 1 are the other ranks. Their median is the lower one of two. */
	for (u32 i = 0; i < nr; i++) {
		u32 place;

		if (!same_job(&blames[i], &blames[of]))
			continue;
		place = place_of(blames, nr, i, measure);
		least = place == 0 ? i : least;
		middle = place == nr_ranks / 2 ? i : middle;
	}
	lead_ns = time_in_collectives(&blames[middle], measure) -
		  time_in_collectives(&blames[least], measure);
	if (blame_permille(lead_ns, blames[of].wall_ns) < STRAGGLER_PERMILLE)
		return -ENOENT;
	*ret = (struct blame_straggler){
		.at = least,
		.nr_ranks = nr_ranks,
		.lead_ns = lead_ns,
		.is_measured = measure == WAITED_MEASURED,
	};
	return 0;
}
