/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "truth/truth.h"
#include "work/ring.h"
#include "work/workload.h"

#define LOADERS_MAX 256 /* per rank */

/* How the loaders of a job work; part of its configuration. */
struct loading {
	u64 loaders; /* per rank */
	u64 threads; /* loaders are threads instead of processes */
	u64 cpu_us;  /* per batch */
	u64 io_bytes;
	const char *io_file;
	u64 prefetch;
};

/* The rows of `loading` in an option table; `at` is its offset in the configuration. */
/* clang-format off */
#define LOADING_OPTIONS(at) \
	{ "loaders", OPTION_U64, at + offsetof(struct loading, loaders), 0, NULL, "loaders per rank" }, \
	{ "load-cpu-us", OPTION_U64, at + offsetof(struct loading, cpu_us), 0, NULL, "CPU time to produce a batch, +-20 %" }, \
	{ "prefetch", OPTION_U64, at + offsetof(struct loading, prefetch), 1, NULL, "maximum number of batches that a loader is ahead" }
/* clang-format on */

struct loaders;

/*
 * Starts the loaders of a rank, as processes or as threads that log to `truth`.
 * nr_batches is at least the number of batches that the rank will take.
 */
int loaders_start(const struct workload *work, const struct loading *config, u64 rank,
		  u64 nr_batches, struct ring *ring, struct truth *truth, struct loaders **ret);

/* Returns whether the loader of this batch can no longer deliver it. */
bool loaders_lost(struct loaders *loaders, u64 batch);

/* The thread id of the loader of this batch. */
u32 loaders_tid(const struct loaders *loaders, u64 batch);

/* Waits until all loaders end (ring_stop() stops them) and frees. Returns a negative value if one
 * failed. */
int loaders_finish(struct loaders *loaders);
