/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the ranks of a job. */
#include <errno.h>
#include "core/blame.h"

/* Kernels fill a GPU that is active for this share of its busy time, per mille. */
#define FILLED_PERMILLE 900

static bool same_job(const struct blame *a, const struct blame *b)
{
	return a->process->job == b->process->job && a->process->nr_ranks == b->process->nr_ranks;
}

/* Stages of a pipeline differ by design. */
static bool are_alike(const struct blame *a, const struct blame *b)
{
	return same_job(a, b) && !a->is_stage && !b->is_stage;
}

static bool fills_gpu(const struct blame *blame)
{
	return blame->has_active && !blame->is_stage && blame->activity.busy_ns > 0 &&
	       blame_permille(blame->activity.active_ns, blame->activity.busy_ns) >=
		       FILLED_PERMILLE;
}

static void measure(struct blame *blame)
{
	const struct gpu_activity *activity = &blame->activity;
	u64 waited_ns = activity->busy_ns > activity->active_ns
				? activity->busy_ns - activity->active_ns
				: 0;

	blame->waited = WAITED_MEASURED;
	if (waited_ns < blame->waited_ns)
		blame->waited_ns = waited_ns;
}

void blame_measure_waiting(struct blame *blames, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		if (!fills_gpu(&blames[i]))
			continue;
		for (u32 k = 0; k < nr; k++)
			if (blames[k].waited == WAITED_AT_MOST && blames[k].has_active &&
			    are_alike(&blames[i], &blames[k]))
				measure(&blames[k]);
	}
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

		if (i == at || !are_alike(&blames[i], &blames[at]))
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
		if (!are_alike(&blames[i], &blames[of]))
			continue;
		nr_ranks++;
		measure = blames[i].waited < measure ? blames[i].waited : measure;
	}
	if (nr_ranks < 2 || measure == WAITED_UNKNOWN)
		return -ENOENT;
	/* Places 1 to nr_ranks - 1 are the other ranks. Their median is the lower one of two. */
	for (u32 i = 0; i < nr; i++) {
		u32 place;

		if (!are_alike(&blames[i], &blames[of]))
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
