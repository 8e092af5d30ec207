/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

/*
 * CPU work of a given size. Its measure is the thread's own CPU time, so being
 * preempted makes it end later and not shorter, as with real work.
 */
struct burn {
	u64 rounds_per_ms;
};

/* Takes a few milliseconds; the result is good for every process of this machine. */
struct burn burn_calibrate(void);

void burn_ns(const struct burn *burn, u64 ns);

u64 thread_cpu_ns(void);

/* A stateless generator: the same seed and index give the same number everywhere. */
u64 random_at(u64 seed, u64 index);

/* `mean` with a deviation of up to a fifth either way. */
u64 random_around(u64 mean, u64 seed, u64 index);
