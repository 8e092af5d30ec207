/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which launches are timed. To see the return of a call as well costs half as much again
 * as its entry does, and a thread may launch a hundred thousand times a second: it has all
 * launches timed as long as they are few, and of more only some, by chance, each of
 * which then counts for those that were not. So counts and quantiles stay what they
 * would be, within what a sample can tell.
 */
#include "abi/runtime.h"

/* So many of a second are all timed, which costs less than a thousandth of it. */
#define LAUNCH_ALL_TIMED  1000
#define LAUNCH_TIMED_1_IN 16

struct launch_timing {
	u64 second_ns; /* when the current one began */
	u32 nr;	       /* launches in it */
	u32 through;   /* the runtime was called, and will call the driver */
};

/*
 * For how many launches this one counts; 0: not timed. Called for every one, with a
 * number that nobody can foresee. The driver's launch inside of the runtime's is none
 * of its own; where a call of the runtime fails before that, a later one of the
 * driver's is not timed.
 */
static inline u32 launch_weight(struct launch_timing *timing, u32 level, u64 now, u32 chance)
{
	bool is_inner = level == LEVEL_DRIVER && timing->through;

	timing->through = level == LEVEL_RUNTIME;
	if (is_inner)
		return 0;
	if (now - timing->second_ns >= NSEC_PER_SEC) {
		timing->second_ns = now;
		timing->nr = 0;
	}
	if (timing->nr++ < LAUNCH_ALL_TIMED)
		return 1;
	return chance % LAUNCH_TIMED_1_IN ? 0 : LAUNCH_TIMED_1_IN;
}

/* When a launch began and its weight, in one number: the kernel has room for no more. */
static inline u64 launch_begun(u64 now, u32 weight)
{
	return now << 1 | (weight > 1);
}

static inline u32 launch_begun_weight(u64 begun)
{
	return begun & 1 ? LAUNCH_TIMED_1_IN : 1;
}

static inline u64 launch_ns(u64 begun, u64 now)
{
	return now - (begun >> 1);
}
