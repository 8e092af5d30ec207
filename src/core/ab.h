/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An A/B experiment on a running job: is the job faster with the scheduler or without it?
 *
 * Time is divided into pairs of windows. In each pair, one window runs with the scheduler and
 * one without, in random order. The start of each window, the settling time, is not measured.
 * Any other change on the machine therefore affects both modes alike: if the scheduler has no
 * effect, the difference of a pair is equally likely to be positive or negative. This holds
 * for dependent steps and for heavy-tailed step times.
 *
 * Mean step time and GPU busy share are computed over all windows of a mode. Their 95 %
 * interval comes from the jackknife over pairs, with Student's t for the number of pairs. The
 * p99 is read from histogram buckets, so it is exact only to a factor of 2^(1/4). Its interval
 * includes this error.
 *
 * A difference is reported only if the mean step time changes by at least 1 %, because a
 * smaller change does not matter in practice, and if the 99 % interval excludes 0. A 95 %
 * interval would report an effect that does not exist in one of twenty experiments.
 */
#include "core/snapshot.h"

enum ab_mode {
	AB_WITHOUT,
	AB_WITH,
	AB_MODE_NR,
};

#define AB_PAIRS_MAX	     64
/* With fewer pairs there is no result. A plan has at least AB_PAIRS_PLANNED_MIN pairs. */
#define AB_PAIRS_MIN	     4
#define AB_PAIRS_PLANNED_MIN 6

/* The measurements of one window, or the sum of several windows. */
struct ab_window {
	struct hist steps;
	u64 busy_ns;
	u64 watched_ns; /* summed over all processes */
	u32 nr_processes;
	u32 pad;
};

/* One pair of windows, or the sum of all pairs. */
struct ab_pair {
	struct ab_window windows[AB_MODE_NR];
};

struct ab_key {
	u32 pid;
	u32 pad;
	u64 start_ns;
};

/*
 * Measures the given processes between two snapshots. A process that is missing from one of the
 * snapshots is skipped. -ESRCH: no process is in both; -ESTALE: a counter decreased.
 */
int ab_measure(const struct snapshot *before, const struct snapshot *after,
	       const struct ab_key *keys, u32 nr, struct ab_window *ret);
void ab_add(struct ab_window *to, const struct ab_window *from);
/* The mean time per step; 0 if no step ended. */
u64 ab_step_ns(const struct ab_window *window);

struct ab_plan {
	u32 nr_pairs;
	u32 pad;
	u64 window_ns; /* includes settle_ns */
	u64 settle_ns;
};

/* -ERANGE: total_ns is too short; steps of this length need *ret_needed_ns. */
int ab_plan(u64 total_ns, u64 step_ns, struct ab_plan *ret, u64 *ret_needed_ns);

/* The mode of the first window in a pair. */
enum ab_mode ab_first(u64 seed, u32 pair);

/* A window must have room for this many steps before it is compared with another window. */
#define AB_STEPS_MIN 10

/*
 * True if the mean step time exceeds `bound_permille` thousandths of the step time in
 * `reference` by more than chance explains. A step that has not ended counts too.
 */
bool ab_is_worse(const struct ab_window *reference, const struct ab_window *window,
		 u32 bound_permille);

struct ab_interval {
	double value;
	double low;
	double high;
	bool is_sure; /* the 99 % interval excludes 0 */
};

struct ab_effect {
	double step_ns[AB_MODE_NR];
	double p99_ns[AB_MODE_NR];
	double busy[AB_MODE_NR];	/* 0 to 1 */
	struct ab_interval step_change; /* -0.1: 10 % shorter with the scheduler */
	struct ab_interval p99_change;
	struct ab_interval busy_change; /* 0.1: from 50 % to 60 % */
	u64 nr_steps[AB_MODE_NR];
	bool has_p99; /* there were enough steps for a p99 */
};

/* -ENODATA: not enough measurements. */
int ab_evaluate(const struct ab_pair *pairs, u32 nr, struct ab_effect *ret);

enum ab_verdict {
	AB_NO_DIFFERENCE,
	AB_BETTER, /* with the scheduler */
	AB_WORSE,
};

enum ab_verdict ab_judge(const struct ab_effect *effect);
