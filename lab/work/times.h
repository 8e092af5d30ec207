/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"

/*
 * What the kernel says of a thread's own time: on a CPU, and able to run but not
 * running. Exact for the thread that asks. Where the kernel does not count delays
 * there are none.
 */
struct times {
	u64 cpu_ns;
	u64 delay_ns;
};

/* For the thread that calls it; a negative descriptor knows no delays. */
int times_open(void);
struct times times_read(int fd);

/* As of `now_ns`, since when the thread has not slept. */
struct times times_at(int fd, u64 now_ns);

struct times times_since(int fd, struct times before);
