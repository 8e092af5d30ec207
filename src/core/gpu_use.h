/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the counters of a GPU say about one process between two snapshots. A counter is the sum
 * over all users of the GPU, so it describes a process only if the process uses exactly one
 * GPU and no other process may use that GPU.
 */
#include <stdbool.h>
#include "core/snapshot.h"

/* The counter of the GPU of a process in one snapshot. */
struct gpu_use {
	u32 counter; /* enum gpu_counter; GPU_COUNTER_NONE: there is none for this process */
	u32 gpu;
	u64 busy_ns;
	u64 since_ns;
	u64 at_ns;    /* the counter is known up to here */
	u64 taken_ns; /* the time of the snapshot */
};

/* The time in which the GPU worked between two snapshots lies in these bounds. */
struct gpu_use_bounds {
	u64 min_ns;
	u64 max_ns;
};

struct gpu_use gpu_use_of(const struct snapshot *snapshot, const struct snapshot_process *process);

/* False: no counter covers the time between the snapshots. */
bool gpu_use_between(const struct gpu_use *then, const struct gpu_use *now,
		     struct gpu_use_bounds *ret);

/* Scaled to the time between the snapshots, because the GPU is not sampled at their times. */
struct gpu_activity {
	u64 active_ns; /* its multiprocessors worked */
	u64 busy_ns;   /* any kernel ran, by the same counters; 0: not known */
};

/* False: not known. */
bool gpu_active_between(const struct snapshot *before, const struct snapshot *after,
			const struct snapshot_process *process, struct gpu_activity *ret);
