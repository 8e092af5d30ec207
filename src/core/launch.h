/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Selects the launches that are timed. Timing a launch needs a probe at the return of the
 * call, which adds half of the cost of the probe at its entry, and a thread may launch
 * 100,000 times per second. At low launch rates, all launches are timed. At high rates, a
 * random sample is timed, and each sample is weighted by the number of launches that it
 * stands for. Counts and quantiles stay correct within the sampling error.
 */
#include "abi/runtime.h"

/* The first launches of each second are all timed, which costs less than 1 ms per second. */
#define LAUNCH_ALL_TIMED  1000
#define LAUNCH_TIMED_1_IN 16

/*
 * A launch that takes this much longer than the shortest one found the queue of the GPU full. A
 * launch takes some microseconds; the shortest one includes the cost of probes.
 */
#define LAUNCH_BLOCKED_NS (50 * NSEC_PER_USEC)

struct launch_timing {
	u64 second_ns; /* when the current second began */
	u32 nr;	       /* launches in the current second */
	u32 through;   /* the runtime was called and will call the driver */
	u64 least_ns;  /* the shortest launch; 0: none was timed */
	u32 random;    /* decides which launches are timed */
	u32 pad;
};

/*
 * Whether this launch is a part of another one: a launch of the runtime calls the driver. Call
 * it for every launch. If a launch of the runtime fails before it calls the driver and its return
 * is not traced, the next launch of the driver is taken for a part of it.
 */
static inline bool launch_is_inner(struct launch_timing *timing, u32 level)
{
	bool is_inner = level == LEVEL_DRIVER && timing->through;

	timing->through = level == LEVEL_RUNTIME;
	return is_inner;
}

/* A launch that was not inner has returned. */
static inline void launch_returned(struct launch_timing *timing)
{
	timing->through = 0;
}

/*
 * Whether this launch is timed. Call it for every launch that is not inner. It costs no call
 * of a helper: random numbers come from a linear congruence, and only launches that are timed
 * read the clock.
 */
static inline bool launch_is_timed(struct launch_timing *timing)
{
	timing->random = timing->random * 1664525 + 1013904223;
	return timing->nr < LAUNCH_ALL_TIMED || timing->random < ~0U / LAUNCH_TIMED_1_IN;
}

/* The weight of a launch that is timed. */
static inline u32 launch_weight(struct launch_timing *timing, u64 now)
{
	u32 weight = timing->nr < LAUNCH_ALL_TIMED ? 1 : LAUNCH_TIMED_1_IN;

	if (now - timing->second_ns >= NSEC_PER_SEC) {
		timing->second_ns = now;
		timing->nr = 0;
	}
	timing->nr++;
	return weight;
}

/*
 * The start time and the weight in one number, because the BPF programs can store only one. The
 * weight is 0 for a launch that is not timed: only its result matters.
 */
static inline u64 launch_begun(u64 now, u32 weight)
{
	return now << 2 | (u64)(weight > 1) << 1 | (weight > 0);
}

static inline u32 launch_begun_weight(u64 begun)
{
	return !(begun & 1) ? 0 : begun & 2 ? LAUNCH_TIMED_1_IN : 1;
}

static inline u64 launch_begun_ns(u64 begun)
{
	return begun >> 2;
}

/* Whether a launch that took so long found the queue full. The first ones find it empty. */
static inline bool launch_is_blocked(struct launch_timing *timing, u64 ns)
{
	if (!timing->least_ns || ns < timing->least_ns)
		timing->least_ns = ns;
	return ns > 2 * timing->least_ns + LAUNCH_BLOCKED_NS;
}
