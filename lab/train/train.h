/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <pthread.h>

#include "truth/summary.h"
#include "vgpu/include/vgpu_nccl.h"
#include "work/loader.h"

/* What one rank does differently in its all-reduces. */
enum odd_kind {
	ODD_NONE,
	ODD_STOP,  /* it stops itself before the last all-reduce of one step */
	ODD_BYTES, /* they have half the bytes */
	ODD_LATE,  /* it burns CPU time before them */
};

/* The command line; main.c contains the table with defaults and help. */
struct train_config {
	struct workload work;
	u64 ranks;
	u64 steps;
	double seconds;
	struct loading loading;
	u64 launches;
	u64 kernel_us;
	u64 copy_bytes;
	u64 allreduces;
	u64 allreduce_bytes;
	u64 hidden_collective; /* through hidden.h instead of NCCL */
	u64 optimizer_us;
	u64 launch_gap_us;
	u64 checkpoint_every;
	u64 checkpoint_bytes;
	u64 startup_ms;
	const char *join; /* NULL: this process starts all ranks */
	u64 slow_rank;
	double slow_factor;
	u64 odd_rank;
	u64 odd_kind; /* enum odd_kind */
	u64 odd_step; /* the first step in which it is odd */
	u64 odd_us;   /* ODD_LATE */
};

/* Memory that the ranks share. */
struct train_shared {
	pthread_barrier_t barrier;
	ncclUniqueId id;
	struct hidden *hidden; /* NULL: collectives use NCCL */
	u64 stop_at;	       /* the first step that does not run */
	struct truth_quantiles steps;
	double seconds;
};

/* Runs a rank process. Returns 0, or a negative errno after an error message on stderr. */
int rank_run(const struct train_config *config, struct train_shared *shared, u64 rank);
