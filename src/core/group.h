/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shares and limits of cgroups. It is pure, so that user space can test every case.
 *
 * A cgroup divides its CPU time among its active children and its own runnable tasks by
 * weight. The share of a task is the product of these fractions up to the root. Its
 * virtual time advances by its CPU time times a rate: the inverse of its share, relative
 * to the share of an average task of the machine. Without cgroups the rate is 100 / weight.
 */
#include <stdbool.h>
#include "abi/types.h"

#define RATE_ONE 1024ULL /* virtual time advances as fast as CPU time */
#define RATE_MAX (RATE_ONE << 12)

#define GROUP_WEIGHT_DEFAULT 100
/* Sums of weights are limited, so that no product below overflows. */
#define GROUP_WEIGHT_SUM_MAX (1ULL << 24)
#define GROUP_RATIO_MAX	     (1ULL << 38)
#define RATIO_SHIFT	     16

/*
 * Each cache keeps small changes of the weight of the machine, so that most wakeups and sleeps do
 * not write a line that all CPUs read. A task may wake up in one cache and go to sleep in another,
 * so what caches keep does not cancel out. Together they keep at most 1/8 of the sum, and each at
 * most four tasks of nice 0.
 */
#define WEIGHT_KEPT_MAX (4 * GROUP_WEIGHT_DEFAULT)

/* Whether a cache passes on what it kept. With one cache it keeps nothing. */
static inline bool weight_is_passed_on(s64 kept, u64 machine_weight, u32 nr_caches)
{
	u64 most = machine_weight / 8 / nr_caches, size = kept < 0 ? -kept : kept;

	return size >= WEIGHT_KEPT_MAX || size > most;
}

/* The weight of the machine. The sum can be below that of one task, or below 0. */
static inline u64 machine_weight_of(s64 sum)
{
	return sum > GROUP_WEIGHT_DEFAULT ? sum : GROUP_WEIGHT_DEFAULT;
}

/* An inverse share: it begins with the whole machine and is divided at each level. */
static inline u64 ratio_of_machine(u64 machine_weight)
{
	u64 weight = machine_weight < GROUP_WEIGHT_SUM_MAX ? machine_weight : GROUP_WEIGHT_SUM_MAX;

	return (RATE_ONE * GROUP_WEIGHT_DEFAULT << RATIO_SHIFT) / (weight ? weight : 1);
}

/* The inverse share of a member with this weight; `sum` is the weight of all active members. */
static inline u64 ratio_of_member(u64 ratio, u64 sum, u64 weight)
{
	u64 least = weight ? weight : 1;
	u64 all = sum > least ? sum : least;

	if (all > GROUP_WEIGHT_SUM_MAX)
		all = GROUP_WEIGHT_SUM_MAX;
	ratio = ratio * all / least;
	return ratio < GROUP_RATIO_MAX ? ratio : GROUP_RATIO_MAX;
}

static inline u64 rate_of_ratio(u64 ratio)
{
	u64 rate = ratio >> RATIO_SHIFT;

	if (rate < 1)
		return 1;
	return rate < RATE_MAX ? rate : RATE_MAX;
}

/* Converts CPU time to virtual time. Longer times than 16 s do not occur. */
static inline u64 virtual_ns(u64 rate, u64 ns)
{
	return (ns < 16 * NSEC_PER_SEC ? ns : 16 * NSEC_PER_SEC) * rate / RATE_ONE;
}

/*
 * CPU time per second of wall time that a group may use and still be promoted: its share
 * of all CPUs times `percent`. `machine_weight` and `ratio` are those of its rate.
 */
static inline u64 promotion_ns_per_s(u64 ratio, u64 machine_weight, u32 nr_cpus, u32 percent)
{
	u64 whole = ratio_of_machine(machine_weight);
	u64 cpus_ns = NSEC_PER_SEC / 100 * percent * nr_cpus;

	return ratio <= whole ? cpus_ns : cpus_ns / 1024 * (whole * 1024 / ratio);
}

/* How far a group may exceed its rate of promotion before it is no longer promoted. */
#define PROMOTION_BURST_NS (100 * NSEC_PER_MSEC)
#define PROMOTION_MAX_NS   (200 * NSEC_PER_MSEC)

/* The CPU time that a rate of promotion allows in a wall time. More than 1 s is not saved up. */
static inline u64 promotion_allowed(u64 wall_ns, u64 ns_per_s)
{
	return wall_ns < NSEC_PER_SEC ? ns_per_s / 1024 * wall_ns / (NSEC_PER_SEC / 1024)
				      : ns_per_s;
}

/* cpu.max of a cgroup: `quota_ns` of CPU time in each period, plus a burst that was saved. */
struct group_limit {
	u64 quota_ns; /* 0: no limit */
	u64 period_ns;
	u64 burst_ns;
};

/* The budget after a number of periods. A debt is carried over. */
static inline s64 limit_refill(const struct group_limit *limit, s64 budget_ns, u64 periods)
{
	s64 most = (s64)(limit->quota_ns + limit->burst_ns);
	s64 added = periods < 1024 ? (s64)(limit->quota_ns * periods) : most - budget_ns;

	return budget_ns + added < most ? budget_ns + added : most;
}
