/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What others took of the CPU time a test wanted. On a machine that shares its
 * cores a test may stand still for seconds, so no bound on time holds by itself:
 * it is `bound + what was taken meanwhile`. On a quiet machine that adds nothing.
 * Better is a witness that knows no wall time at all: the device's own log,
 * counts, or the order of things.
 */
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "abi/types.h"

/*
 * By guests on the same machine, from all CPUs together. A bound on CPU time wants
 * this one: not every kernel knows that it was not us who used what they took.
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

/* By other tasks, from one thread: how long it waited for a CPU. 0 is the caller. */
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

/* A bound on wall time wants both. */
static inline u64 taken_ns(void)
{
	return taken_by_guests_ns() + taken_by_tasks_ns(0);
}
