/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Balance of load between caches. The speed of a cache is the virtual time that its clock
 * advances in a span of wall time: what a task with an average share gets there. A task that has
 * used up its slice in a slow cache moves to a faster one, with a probability that grows with the
 * difference, so that the speeds approach each other without swinging.
 */
#include <stdbool.h>
#include "abi/types.h"

/* A speed is measured for so long, and is unknown after BALANCE_STALE_NS. */
#define BALANCE_SPAN_NS	    (16 * NSEC_PER_MSEC)
#define BALANCE_STALE_NS    (8 * BALANCE_SPAN_NS)
#define BALANCE_ONE	    1024 /* certain */
/* Smaller differences are noise. A task that wakes up moves only for a large one. */
#define BALANCE_LEAST	    (BALANCE_ONE / 16)
#define BALANCE_LEAST_WOKEN (BALANCE_ONE / 4)

/* The average of a speed, in virtual microseconds for each second, and what was just measured. */
static inline u64 balance_speed(u64 speed, u64 virtual_ns, u64 wall_ns)
{
	u64 fresh = virtual_ns * 1000 / (wall_ns / 1000 + 1);

	return speed ? (speed + fresh) / 2 : fresh;
}

/* How much slower the cache is than the other one, as a part of BALANCE_ONE. */
static inline u64 balance_lag(u64 speed, u64 other)
{
	return speed < other ? (other - speed) * BALANCE_ONE / other : 0;
}

/*
 * The probability to move a task. The longer the queue, the more rarely each of its tasks comes
 * here, so the more likely each one moves.
 */
static inline u64 balance_chance(u64 lag, u64 nr_waiting, u64 nr_cpus)
{
	return lag * (nr_waiting + nr_cpus) / (nr_cpus ? nr_cpus : 1) / 4;
}
