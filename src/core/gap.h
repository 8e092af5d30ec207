/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernels around idle time. When time is charged to a stack, it is known which kernel the
 * process launched last, and not yet which one it launches next. So the sum waits here until then.
 *
 * Several threads can launch or be sampled at the same time, and a sample can interrupt a launch.
 * Only one of them takes the gap. None waits for it: a sample without it has unknown kernels, and a
 * launch without it makes those around it unknown.
 */
#include <stdbool.h>
#include "abi/lines.h"

static inline bool gap_take(struct lines_gap *gap)
{
	return !__sync_lock_test_and_set(&gap->is_taken, 1);
}

static inline void gap_release(struct lines_gap *gap)
{
	__sync_lock_test_and_set(&gap->is_taken, 0);
}

/* A launch did not get the gap. */
static inline void gap_tear(struct lines_gap *gap)
{
	__sync_lock_test_and_set(&gap->is_torn, 1);
}

/*
 * Whether there was a launch of an unknown kernel since the last time. If so, what waits was before
 * it. Call it each time that the gap was taken. `is_inner`: for a launch of the driver, which
 * belongs to that of the runtime.
 */
static inline bool gap_is_over(struct lines_gap *gap, bool is_inner)
{
	bool is_over = __sync_lock_test_and_set(&gap->is_torn, 0);

	is_over |= gap->is_through && !is_inner;
	gap->is_through = 0;
	if (is_over) {
		gap->after = GAP_UNKNOWN;
		gap->nr_launches++;
	}
	return is_over;
}

/* What waits is before this launch. */
static inline void gap_launched(struct lines_gap *gap, u64 handle)
{
	gap->after = handle;
	gap->nr_launches++;
}

static inline struct lines_waiting *gap_at(struct lines_gap *gap, u32 i)
{
	/* Keeps the compiler from dropping the mask, which the verifier needs. */
	asm volatile("" : "+r"(i));
	return &gap->waiting[i & (LINES_WAITING - 1)];
}

/* Without a branch for each member, because the verifier would follow all of them. */
static inline bool gap_is_same(const struct lines_sum_key *a, const struct lines_sum_key *b)
{
	return !((a->stack.hash ^ b->stack.hash) | (a->after ^ b->after) |
		 (a->stack.tgid ^ b->stack.tgid) | (a->tid ^ b->tid) | (a->cause ^ b->cause) |
		 (a->role ^ b->role) | (a->call ^ b->call));
}

/* Lets a sum wait. False if there is no room. */
static inline bool gap_wait(struct lines_gap *gap, const struct lines_sum_key *key,
			    const struct lines_sum *sum)
{
	struct lines_waiting *waiting;
	u32 nr = gap->nr_waiting, i = 0;

	for (; i < LINES_WAITING; i++)
		if (i >= nr || gap_is_same(&gap_at(gap, i)->key, key))
			break;
	if (i >= LINES_WAITING)
		return false;
	waiting = gap_at(gap, i);
	if (i >= nr) {
		waiting->key = *key;
		waiting->sum = (struct lines_sum){};
		gap->nr_waiting = i + 1;
	}
	waiting->sum.done_ns += sum->done_ns;
	waiting->sum.open_ns += sum->open_ns;
	waiting->sum.nr_samples += sum->nr_samples;
	return true;
}
