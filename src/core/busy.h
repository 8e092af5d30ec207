/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * When the device will be done: work takes about as long as it took lately. A
 * span that was seen can be too long, as its end is noticed late on a busy
 * machine, but never too short; so the estimate is the least of the last few.
 */
#include "abi/types.h"

/* Spans a minimum is taken over; with the one before, 8 to 16 count. */
#define BUSY_ROUND 8

struct busy_estimate {
	u64 since_ns;	/* when the device got work; 0 while it has none */
	u64 least_ns;	/* of the present round, 0 while it is empty */
	u64 earlier_ns; /* of the round before */
	u32 nr;
	u32 pad;
};

static inline void busy_begin(struct busy_estimate *busy, u64 now)
{
	if (!busy->since_ns)
		busy->since_ns = now;
}

static inline void busy_end(struct busy_estimate *busy, u64 now)
{
	u64 span = now - busy->since_ns;

	if (!busy->since_ns)
		return;
	busy->since_ns = 0;
	if (busy->nr == BUSY_ROUND) {
		busy->earlier_ns = busy->least_ns;
		busy->least_ns = 0;
		busy->nr = 0;
	}
	if (!busy->least_ns || span < busy->least_ns)
		busy->least_ns = span;
	busy->nr++;
}

/* When the work of now should be done; 0 when it is not known. */
static inline u64 busy_expected_end(const struct busy_estimate *busy)
{
	u64 least = busy->least_ns;

	if (!least || (busy->earlier_ns && busy->earlier_ns < least))
		least = busy->earlier_ns;
	return busy->since_ns && least ? busy->since_ns + least : 0;
}
