/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

/*
 * The times of a thread, from the kernel: time on a CPU, and delay (runnable but not
 * running). Exact for the calling thread. The delay is 0 if the kernel does not count
 * delays.
 */
struct times {
	u64 cpu_ns;
	u64 delay_ns;
};

/* Opens the times of the calling thread. A negative descriptor yields no delays. */
int times_open(void);
struct times times_read(int fd);

/* The times at `now_ns`; the thread must not have slept since then. */
struct times times_at(int fd, u64 now_ns);

struct times times_since(int fd, struct times before);
