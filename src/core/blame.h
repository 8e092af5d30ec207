/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why the GPU of a process was idle between two snapshots, and who is to blame. All of it
 * is differences of counters: whole numbers that are never negative. A counter that went
 * back (zerneld was started anew in between) has no answer.
 */
#include "core/snapshot.h"

/* How well it is known for how long a rank waited for others inside collectives. */
enum blame_waited {
	WAITED_UNKNOWN,	 /* it has no others */
	WAITED_AT_MOST,	 /* its own work and the transfer are part of it */
	WAITED_MEASURED, /* the device had work and did none */
};

struct blame {
	const struct snapshot_process *process; /* in the later snapshot */
	u64 wall_ns;
	u64 busy_ns;
	u64 idle_ns; /* the sum of the causes */
	u64 cause_ns[IDLE_CAUSE_NR];
	u64 collective_ns; /* in the phase of collectives */
	u64 waited_ns;	   /* of busy_ns */
	u32 waited;	   /* enum blame_waited */
	u32 nr_culprits;
	struct snapshot_culprit culprits[CULPRITS_MAX]; /* who cost most first */
	u64 nr_steps;
	struct hist steps; /* empty when they are not known */
};

/*
 * `process` is one of `after`. -ESRCH: it was not there before, or was another of that
 * number; -ESTALE: its counters, or time itself, went back or stood still.
 */
int blame_process(const struct snapshot *before, const struct snapshot *after,
		  const struct snapshot_process *process, struct blame *ret);

/* The same process earlier or later: a number is given away again, a start is not. */
const struct snapshot_process *blame_find(const struct snapshot *snapshot, u32 pid, u64 start_ns);

/* The time that the GPU was watched, of which busy and idle are parts. */
static inline u64 blame_watched_ns(const struct blame *blame)
{
	return blame->busy_ns + blame->idle_ns;
}

/* Per mille, to the nearest; 0 of nothing. */
u32 blame_permille(u64 part, u64 whole);

/* The cause that took most; IDLE_CAUSE_NR when there was no idle time. */
u32 blame_largest_cause(const struct blame *blame);

struct blame_straggler {
	u32 at;		  /* its place among the blames */
	u32 nr_ranks;	  /* that were compared */
	u64 lead_ns;	  /* how much less it waited than the others at the middle */
	bool is_measured; /* else it comes to collectives last: its device may not be the last */
};

/* The others wait that much longer, in thousandths of the span, before one is named. */
#define STRAGGLER_PERMILLE 100

/*
 * Ranks meet in collectives, so the one that comes last is the one that hardly waits. Looks
 * at the ranks of the job that `blames[of]` is a rank of. -ENOENT: nobody stands out.
 */
int blame_find_straggler(const struct blame *blames, u32 nr, u32 of, struct blame_straggler *ret);
