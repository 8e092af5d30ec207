/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why the GPU of a process was idle between two snapshots, and which tasks or disks caused it.
 * All results are differences of counters: whole numbers that are never negative. If a counter
 * decreased (zerneld was restarted between the snapshots), there is no result.
 */
#include "core/idle_share.h"
#include "core/snapshot.h"

/* How precisely the time that a rank waited for other ranks in collectives is known. */
enum blame_waited {
	WAITED_UNKNOWN,	 /* the process has no other ranks */
	WAITED_AT_MOST,	 /* an upper bound: includes the rank's own work and the transfer */
	WAITED_MEASURED, /* the GPU had queued work but was not active */
};

struct blame {
	const struct snapshot_process *process; /* in the later snapshot */
	u64 wall_ns;
	u64 busy_ns; /* the watched time minus idle_ns */
	u64 idle_ns; /* the estimate: the sum of the causes */
	u64 idle_min_ns;
	u64 idle_max_ns;
	u64 cause_ns[IDLE_CAUSE_NR];
	u64 launching_ns; /* the part of cause_ns[IDLE_CPU] in which launches came too slowly */
	bool is_measured; /* a counter of the GPU narrowed the range of the idle time */
	bool disagrees;	  /* a counter of the GPU contradicts these times */
	bool is_stage;	  /* the rank mostly sends and receives: ranks differ by design */
	bool has_active;
	u64 counter_idle_ns;	      /* if it disagrees: the idle time by the counter */
	struct gpu_activity activity; /* if has_active */
	u64 collective_ns;	      /* time in the collective phase */
	u64 waited_ns;		      /* part of busy_ns */
	u32 waited;		      /* enum blame_waited */
	u32 nr_culprits;
	struct snapshot_culprit culprits[CULPRITS_MAX]; /* sorted by time, largest first */
	u64 nr_steps;
	struct hist steps;	/* empty if not known */
	struct hist idle_spans; /* spans in which the GPU certainly had no work; the same */
};

/*
 * `process` must be in `after`. -ESRCH: it is not in `before`, or its pid belonged to another
 * process; -ESTALE: a counter of the process decreased, or time did not advance.
 */
int blame_process(const struct snapshot *before, const struct snapshot *after,
		  const struct snapshot_process *process, struct blame *ret);

/* Finds a process by pid and start time. A pid alone can be reused. */
const struct snapshot_process *blame_find(const struct snapshot *snapshot, u32 pid, u64 start_ns);

/* The time for which the GPU was observed: busy plus idle. */
static inline u64 blame_watched_ns(const struct blame *blame)
{
	return blame->busy_ns + blame->idle_ns;
}

/* Per mille, rounded to nearest; 0 if `whole` is 0. */
u32 blame_permille(u64 part, u64 whole);

/* The cause with the most idle time; IDLE_CAUSE_NR if there was no idle time. */
u32 blame_largest_cause(const struct blame *blame);

/*
 * Decides for which ranks the wait for other ranks is measured. A GPU that is busy but not
 * active waits, or runs kernels that do not fill it. Ranks of one job run the same kernels: if
 * they fill the GPU of one rank, the other GPUs wait.
 */
void blame_measure_waiting(struct blame *blames, u32 nr);

struct blame_straggler {
	u32 at;		  /* its index in the blames */
	u32 nr_ranks;	  /* ranks that were compared */
	u64 lead_ns;	  /* how much less it waited than the median of the other ranks */
	bool is_measured; /* else it enters collectives last, but its GPU may not be last */
};

/* A straggler is named if the other ranks wait at least this much longer, per mille of the span. */
#define STRAGGLER_PERMILLE 100

/*
 * Finds the straggler: all ranks wait in a collective for the last one, so the slowest rank waits
 * the least. Compares the ranks of the job of `blames[of]`, except stages of a pipeline.
 * -ENOENT: no rank stands out.
 */
int blame_find_straggler(const struct blame *blames, u32 nr, u32 of, struct blame_straggler *ret);
