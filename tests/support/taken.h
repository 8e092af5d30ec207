/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The CPU time that a test wanted but did not get. On a machine with shared cores, a test
 * may not run for seconds, so a fixed time bound is not reliable. Use `bound + taken
 * time` instead. On an idle machine, the taken time is about zero. It is better to check
 * something that does not depend on wall time: the log of the virtual GPU, counts, or the
 * order of events.
 */
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "abi/types.h"

/*
 * Time that other guests of the same host took (steal time), summed over all CPUs. Use it
 * for bounds on CPU time, because some kernels charge stolen time to the running task.
 */
static inline u64 taken_by_guests_ns(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long ticks = 0;

	if (!file)
		return 0;
	if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	fclose(file);
	return ticks * (NSEC_PER_SEC / (u64)sysconf(_SC_CLK_TCK));
}

/* Time that other tasks took from one thread: its wait for a CPU. `tid` 0 means the caller. */
static inline u64 taken_by_tasks_ns(pid_t tid)
{
	unsigned long long ran, waited = 0;
	char path[64] = "/proc/thread-self/schedstat";
	FILE *file;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	fclose(file);
	return waited;
}

/* The sum of both. Use it for bounds on wall time. */
static inline u64 taken_ns(void)
{
	return taken_by_guests_ns() + taken_by_tasks_ns(0);
}
