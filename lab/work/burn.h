/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

/*
 * CPU work of a given amount, measured in the thread's own CPU time. A preemption
 * therefore delays its end and does not shorten it, as with real work.
 */
struct burn {
	u64 rounds_per_ms;
};

/* Takes a few milliseconds. The result is valid for every process of this machine. */
struct burn burn_calibrate(void);

void burn_ns(const struct burn *burn, u64 ns);

u64 thread_cpu_ns(void);

/* A stateless generator: the same seed and index give the same number everywhere. */
u64 random_at(u64 seed, u64 index);

/* Returns `mean` with a random deviation of at most 20 %. */
u64 random_around(u64 mean, u64 seed, u64 index);
