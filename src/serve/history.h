/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The history of each rank, in memory: where its time went in each second of the last 15
 * minutes, and in each 10 seconds of the last 12 hours. It has no clock: time is that of the
 * snapshots. The time between two snapshots is divided among the slots that it covers, so the
 * values of all slots add up to the differences of the counters.
 *
 * All ranks together have a fixed bound. Where it is reached, the ranks that ended first lose
 * their oldest seconds, then their oldest 10 seconds.
 */
#include <stdbool.h>
#include <stddef.h>
#include "core/snapshot.h"

#define RANK_HISTORY_BYTES_MAX (32UL << 20)
/* Of so many ranks, each still has some minutes. If there are more, none has a history. */
#define RANK_HISTORY_RANKS_MAX 512

/* The values of a slot: times in us. The unknown phase is the rest of the span. */
enum rank_value {
	RANK_SPAN, /* the time that was watched */
	RANK_BUSY,
	RANK_OPEN,
	RANK_IDLE_FIRST,			      /* by enum idle_cause */
	RANK_STEPS = RANK_IDLE_FIRST + IDLE_CAUSE_NR, /* a number */
	RANK_STEP_TIME,				      /* the sum of the times of these steps */
	RANK_PHASE_FIRST,			      /* by enum phase, without PHASE_UNKNOWN */
	RANK_VALUE_NR = RANK_PHASE_FIRST + PHASE_NR - 1,
};

struct rank_slot {
	u32 time_s;	/* its begin, since the epoch */
	u32 memory_mib; /* the largest in the slot */
	u32 values[RANK_VALUE_NR];
};

struct rank_history;

int rank_history_new(size_t bytes_max, struct rank_history **ret);
struct rank_history *rank_history_free(struct rank_history *history);
DEFINE_CLEANUP(struct rank_history, rank_history_free);

/*
 * Adds what happened since the snapshot before. -ENOMEM: some ranks were not added. -E2BIG: there
 * are too many, and the history is empty.
 */
int rank_history_add(struct rank_history *history, const struct snapshot *snapshot);

size_t rank_history_bytes(const struct rank_history *history);
u32 rank_history_nr_ranks(const struct rank_history *history);
/* Parts of 60 slots that were dropped to keep the bound. */
u64 rank_history_nr_thinned(const struct rank_history *history);

#define RANK_HISTORY_SPAN_S (12 * 3600)

/* Points of all ranks in one answer. */
#define RANK_HISTORY_POINTS_MAX 65536

/* Times in seconds since the epoch. */
struct rank_query {
	u64 since;	 /* 0: 15 minutes before `until` */
	u64 until;	 /* 0: now */
	u32 step;	 /* 0: as fine as the data and the bound of points allow */
	const char *job; /* a cgroup, or NULL for all jobs */
};

/* The answer on one line; docs/reference/http.md describes it. A NULL history is switched off. */
int rank_history_to_json(const struct rank_history *history, const struct rank_query *query,
			 char **ret, size_t *ret_length);
