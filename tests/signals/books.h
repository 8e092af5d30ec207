/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Memory that the checker of memory accounts and its caller share: the checker selects
 * the thread for the next call, the caller reports the call.
 */
#include <semaphore.h>
#include "abi/runtime.h"

#define BOOKS_THREADS 8
#define BOOKS_DEVICES 4

enum books_mode {
	/* One call at a time, by the selected thread. Threads also free memory and destroy
	 * contexts of other threads, and many of these calls are invalid. */
	BOOKS_IN_TURN,
	/* All threads call in parallel. No thread uses memory of another thread. */
	BOOKS_AT_ONCE,
};

struct books_shared {
	sem_t go[BOOKS_THREADS];
	sem_t done;
	u64 seed;
	u64 nr_calls; /* of all threads, for BOOKS_AT_ONCE */
	u64 nr_made;
	u64 nr_failed;
	u32 mode;
	u32 is_hip;
	u32 level; /* of the last call */
	u32 tids[BOOKS_THREADS];
	char call[32];
};

/* Runs the caller in its own process; returns its exit status. */
int books_caller(struct books_shared *shared, const char *library_dir);

/* With BOOKS_AT_ONCE, half of the threads allocate through the runtime. */
static inline enum call_level books_level_of_thread(u32 thread)
{
	return thread % 2 ? LEVEL_DRIVER : LEVEL_RUNTIME;
}
