/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * When the device will be done: work takes as long as it took last time. Who
 * waits for its end may have been off the CPU when it came, and then the span
 * that was seen is too long: such a span says nothing, but that the estimate was
 * too high for those who act on it, so it goes down a little until one of them
 * is there in time and sees the end. Nobody can tell for sure that it was in time,
 * so work is expected to end a little earlier each time: an estimate that is too
 * long heals.
 */
#include "abi/types.h"

struct busy_estimate {
	u64 since_ns; /* when the device got work; 0 while it has none */
	u64 span_ns;  /* how long the work of now should take; 0 when not known */
};

static inline void busy_begin(struct busy_estimate *busy, u64 now)
{
	if (!busy->since_ns)
		busy->since_ns = now;
}

/* `late`: who saw the end came back to its CPU only just before. */
static inline void busy_end(struct busy_estimate *busy, bool late, u64 now)
{
	u64 span = now - busy->since_ns;

	if (!busy->since_ns)
		return;
	busy->since_ns = 0;
	if (!late || !busy->span_ns || span < busy->span_ns)
		busy->span_ns = span;
	else
		busy->span_ns -= busy->span_ns / 16;
}

/* When the work of now should be done; 0 when it is not known. */
static inline u64 busy_expected_end(const struct busy_estimate *busy)
{
	return busy->since_ns && busy->span_ns ? busy->since_ns + busy->span_ns - busy->span_ns / 32
					       : 0;
}
