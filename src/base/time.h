/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The clocks, in nanoseconds. */
#include <time.h>
#include "abi/types.h"

static inline u64 time_of_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

/* A clock that cannot be set. Deadlines and all events of the BPF programs use it. */
static inline u64 time_now_ns(void)
{
	return time_of_ns(CLOCK_MONOTONIC);
}

/* For calls that wait until a time on CLOCK_MONOTONIC. */
static inline struct timespec time_after(u64 ns)
{
	ns += time_now_ns();
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}
