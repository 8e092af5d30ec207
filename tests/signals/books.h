/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the checker of memory books and its caller share: the checker says which
 * thread makes the next call, the caller says what it was.
 */
#include <semaphore.h>
#include "abi/runtime.h"

#define BOOKS_THREADS 8
#define BOOKS_DEVICES 4

enum books_mode {
	/* One call at a time, by the thread that is told to. Threads free each other's
	 * memory and destroy each other's contexts, and much of it is wrong. */
	BOOKS_IN_TURN,
	/* All threads at once; what one has, no other touches. */
	BOOKS_AT_ONCE,
};

struct books_shared {
	sem_t go[BOOKS_THREADS];
	sem_t done;
	u64 seed;
	u64 nr_calls; /* for all threads, when at once */
	u64 nr_made;
	u64 nr_failed;
	u32 mode;
	u32 is_hip;
	u32 level; /* of the call made last */
	u32 tids[BOOKS_THREADS];
	char call[32];
};

/* The caller's life, in a process of its own; returns its exit status. */
int books_caller(struct books_shared *shared, const char *library_dir);

/* When all call at once, half of the threads allocate through the runtime. */
static inline enum call_level books_level_of_thread(u32 thread)
{
	return thread % 2 ? LEVEL_DRIVER : LEVEL_RUNTIME;
}
