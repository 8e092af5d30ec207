/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Predicts when the GPU finishes its queued work: it should take as long as last time.
 *
 * The thread that waits for the end may be off its CPU when the end comes. The span that
 * it then sees is too long and is not a valid sample. It only shows that the estimate was
 * too high, so the estimate is lowered by 1/16, until a waiter is on its CPU in time and
 * sees the real end. A late waiter is not always recognized. The expected end is therefore
 * always 1/32 of the span early, so that an estimate that is too long corrects itself.
 */
#include "abi/types.h"

struct busy_estimate {
	u64 since_ns; /* when the GPU got work; 0 while it has no work */
	u64 span_ns;  /* expected duration of the current work; 0 if not known */
};

static inline void busy_begin(struct busy_estimate *busy, u64 now)
{
	if (!busy->since_ns)
		busy->since_ns = now;
}

/* `late`: the thread that saw the end got its CPU back only just before it. */
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

/* The expected end of the current work; 0 if not known. */
static inline u64 busy_expected_end(const struct busy_estimate *busy)
{
	return busy->since_ns && busy->span_ns ? busy->since_ns + busy->span_ns - busy->span_ns / 32
					       : 0;
}
