/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "train/train.h"
#include "vgpu/include/vgpu_cudart.h"
#include "work/phases.h"

struct rank {
	const struct train_config *config;
	struct train_shared *shared;
	u64 index;
	u64 kernel_ns;
	struct truth *truth;
	struct phases phases;
	struct ring *ring;
	struct loaders *loaders;
	void *host, *device; /* the batch */
	void *gradients;
	ncclComm_t comm;
	int checkpoint_fd;
	u64 *steps_ns;
	u64 nr_steps, room_steps;
};

/* Each prints an error message on stderr and returns a negative value on failure. */
int rank_error(const struct rank *rank, const char *what, const char *why);
int cuda_check(const struct rank *rank, const char *what, cudaError_t error);
int nccl_check(const struct rank *rank, const char *what, ncclResult_t result);

/* Runs one training step of the launcher. */
int step_run(struct rank *rank, u64 step);
