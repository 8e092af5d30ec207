/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether a job is better off with the scheduler or without, found out on the job itself.
 *
 * Time is cut into pairs of windows, one with and one without, and a coin decides which comes
 * first; the beginning of each window, while things settle, is left out. So whatever else
 * changes in the meantime hits both sides alike: without an effect, the difference of a pair
 * could as well have been the opposite one, however steps depend on each other and however
 * heavy their tail is.
 *
 * Step time and GPU busy are those of all windows of a side together. Their 95 % interval is
 * what leaving out one pair after the other says (the jackknife, with Student's t for the
 * number of pairs). The p99 comes out of buckets and is known to a factor of 2^(1/4) only,
 * which its interval has in it.
 *
 * A difference is shown when that of the mean step is at least 1 %, since less matters to
 * nobody, and the 99 % interval has no 0 in it: one interval of 95 % in twenty is wrong, and
 * nobody should be told of an effect that often where there is none.
 */
#include "core/snapshot.h"

enum ab_mode {
	AB_WITHOUT,
	AB_WITH,
	AB_MODE_NR,
};

#define AB_PAIRS_MAX	     64
/* Fewer say nothing; so few are never planned for. */
#define AB_PAIRS_MIN	     4
#define AB_PAIRS_PLANNED_MIN 6

/* What was measured in some time. */
struct ab_window {
	struct hist steps;
	u64 busy_ns;
	u64 watched_ns; /* of all processes together */
	u32 nr_processes;
	u32 pad;
};

/* A pair of windows; of all pairs together when they are added up. */
struct ab_pair {
	struct ab_window windows[AB_MODE_NR];
};

struct ab_key {
	u32 pid;
	u32 pad;
	u64 start_ns;
};

/*
 * What these processes did between two snapshots, as far as they are in both. -ESRCH: none of
 * them is; -ESTALE: counters went back.
 */
int ab_measure(const struct snapshot *before, const struct snapshot *after,
	       const struct ab_key *keys, u32 nr, struct ab_window *ret);
void ab_add(struct ab_window *to, const struct ab_window *from);
/* The time of a step; 0 when none ended. */
u64 ab_step_ns(const struct ab_window *window);

struct ab_plan {
	u32 nr_pairs;
	u32 pad;
	u64 window_ns; /* with the time to settle */
	u64 settle_ns;
};

/* -ERANGE: steps of that length need *ret_needed_ns in all. */
int ab_plan(u64 total_ns, u64 step_ns, struct ab_plan *ret, u64 *ret_needed_ns);

/* Which mode comes first in a pair. */
enum ab_mode ab_first(u64 seed, u32 pair);

/* So many steps must fit into a time before it is compared with another. */
#define AB_STEPS_MIN 10

/*
 * Whether steps take longer than `bound_permille` thousandths of what they took in
 * `reference`, by more than chance explains. A step that does not end counts as well.
 */
bool ab_is_worse(const struct ab_window *reference, const struct ab_window *window,
		 u32 bound_permille);

struct ab_interval {
	double value;
	double low;
	double high;
	bool is_sure; /* that it is not 0, at 99 % */
};

struct ab_effect {
	double step_ns[AB_MODE_NR];
	double p99_ns[AB_MODE_NR];
	double busy[AB_MODE_NR];	/* 0 to 1 */
	struct ab_interval step_change; /* -0.1: with the scheduler 10 % shorter */
	struct ab_interval p99_change;
	struct ab_interval busy_change; /* 0.1: from 50 % to 60 % */
	u64 nr_steps[AB_MODE_NR];
	bool has_p99; /* there were enough steps for one */
};

/* -ENODATA: too little was measured. */
int ab_evaluate(const struct ab_pair *pairs, u32 nr, struct ab_effect *ret);

enum ab_verdict {
	AB_NO_DIFFERENCE,
	AB_BETTER, /* with the scheduler */
	AB_WORSE,
};

enum ab_verdict ab_judge(const struct ab_effect *effect);
