/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Changes the nice value of one thread and restores it. zerneld and its watcher share this
 * code. It uses system calls only, because the watcher is forked from a process with threads.
 */
#include <stdbool.h>
#include "abi/types.h"

/* A thread whose nice value zerneld changed from 0. A reused tid has another start time. */
struct nice_thread {
	u32 tgid;
	u32 tid;
	u64 start_ticks; /* as in /proc/PID/stat */
	u64 slice_ns;	 /* 0: not changed */
	s32 nice;
	u32 pad;
};

/* True if sched_setattr() sets the slice of a task of SCHED_OTHER (Linux 6.12). */
bool nice_has_slices(void);

/*
 * Sets `nice` and `slice_ns`. The children of the thread start with nice 0. -ESRCH: the thread is
 * gone. -EBUSY: its policy, nice value or slice is not the default, so another program manages it.
 */
int nice_thread_set(const struct nice_thread *thread);

/* -ESTALE: another program changed the thread since nice_thread_set(). -ESRCH: it is gone. */
int nice_thread_check(const struct nice_thread *thread);

/* Gives the thread the defaults of the kernel again. Fails like nice_thread_check(). */
int nice_thread_restore(const struct nice_thread *thread);
