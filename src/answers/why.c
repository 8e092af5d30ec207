/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/why.h"
#include <errno.h>
#include <stdlib.h>
#include "answers/choose.h"

/* Sorts by job, then by rank, then by pid. */
static int compare_blames(const void *a, const void *b)
{
	const struct snapshot_process *x = ((const struct blame *)a)->process;
	const struct snapshot_process *y = ((const struct blame *)b)->process;

	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* True for a selected process and all ranks of its job, which are compared with it. */
static bool belongs(const struct snapshot *s, const struct snapshot_process *process,
		    const char *who)
{
	const struct snapshot_process *meant;
	u32 at = 0;

	while ((meant = choose_next(s, who, &at)))
		if (meant == process || (meant->job && meant->job == process->job))
			return true;
	return false;
}

static void collect(struct why *why, const struct snapshot *before, const char *who)
{
	const struct snapshot_process *process;
	u32 at = 0;

	while ((process = choose_next(why->after, NULL, &at))) {
		struct blame *blame = &why->blames[why->nr_blames];
		int err;

		if (!belongs(why->after, process, who))
			continue;
		err = blame_process(before, why->after, process, blame);
		if (err == 0 && blame_watched_ns(blame) == 0)
			err = -ENODATA;
		if (err == 0)
			why->nr_blames++;
		else if (!why->pid || process->pid == why->pid)
			why->missing[why->nr_missing++] = (struct why_missing){ process, err };
	}
	/* The other ranks do not explain the process that was asked for. */
	if (why->pid && why->nr_missing)
		why->nr_blames = 0;
	qsort(why->blames, why->nr_blames, sizeof(*why->blames), compare_blames);
	blame_measure_waiting(why->blames, why->nr_blames);
}

static u32 choose_subject(const struct why *why, const struct why_group *group)
{
	u32 subject = group->has_straggler ? group->straggler.at : group->subject;

	for (u32 i = 0; i < group->nr; i++)
		if (group->blames[i].process->pid == why->pid)
			subject = i;
	return subject;
}

struct why_group why_group(const struct why *why, u32 first)
{
	const struct blame *blames = &why->blames[first];
	struct why_group group = {
		.after = why->after,
		.asked_for_one = why->pid,
		.blames = blames,
	};

	while (first + group.nr < why->nr_blames &&
	       blames[group.nr].process->job == blames->process->job) {
		const struct blame *blame = &blames[group.nr], *most = &blames[group.subject];

		if (why_share(blame, blame->idle_ns) > why_share(most, most->idle_ns))
			group.subject = group.nr;
		group.nr++;
	}
	group.has_straggler =
		blame_find_straggler(blames, group.nr, group.subject, &group.straggler) == 0;
	group.subject = choose_subject(why, &group);
	return group;
}

struct why *why_free(struct why *why)
{
	if (why) {
		free(why->blames);
		free(why->missing);
	}
	free(why);
	return NULL;
}

int why_new(const struct snapshot *before, const struct snapshot *after, const char *who,
	    struct why **ret)
{
	CLEANUP(why_free_cleanup) struct why *why = calloc(1, sizeof(*why));

	if (!why)
		return -ENOMEM;
	why->after = after;
	why->pid = choose_pid(after, who);
	why->blames = calloc(after->nr_processes + 1, sizeof(*why->blames));
	why->missing = calloc(after->nr_processes + 1, sizeof(*why->missing));
	if (!why->blames || !why->missing)
		return -ENOMEM;
	collect(why, before, who);
	*ret = TAKE_PTR(why);
	return 0;
}
