/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One step of a rank, whose main thread is the launcher. The times passed to
 * phases_set() are taken right before the call that begins a phase and right after the
 * call that ends it, as docs/concepts/phases-and-roles.md defines (phases.c corrects
 * for the time that a launcher spends reading its own times):
 *
 *   DataLoading     only if the batch is not ready, until it is
 *   GpuCompute      from the first copy or launch
 *   NcclCollective  from the all-reduce call; a hidden collective blocks, so it follows the sync
 *   OptimizerStep   from the return of the sync
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/hidden.h"
#include "train/rank.h"

#define CHECKPOINT_CHUNK (1ULL << 20)
#define LOADER_CHECK_NS	 NSEC_PER_SEC /* interval at which a waiting launcher checks its loader */

static int batch_get(struct rank *rank, u64 batch)
{
	if (!rank->loaders)
		return 0;
	if (!ring_has_batch(rank->ring, batch)) {
		u64 start = truth_now_ns();

		phases_set(&rank->phases, PHASE_DATA_LOADING, truth_now_ns());
		while (!ring_has_batch(rank->ring, batch)) {
			/* It may have put its last batch and ended since the last check. */
			if (loaders_lost(rank->loaders, batch) &&
			    !ring_has_batch(rank->ring, batch))
				return rank_error(rank, "loader",
						  "ended before it delivered its batch");
			ring_wait_batch(rank->ring, batch, LOADER_CHECK_NS);
		}
		phases_set(&rank->phases, PHASE_UNKNOWN, truth_now_ns());
		truth_log(rank->truth, TRUTH_WAIT, 0, start, truth_now_ns(),
			  loaders_tid(rank->loaders, batch), 0, 0);
	}
	ring_take(rank->ring, batch);
	return 0;
}

static int compute(struct rank *rank)
{
	const struct train_config *config = rank->config;
	void *args[] = { &rank->kernel_ns };
	const dim3 one = { 1, 1, 1 };
	int r = 0;

	if (config->copy_bytes) {
		phases_set(&rank->phases, PHASE_GPU_COMPUTE, truth_now_ns());
		r = cuda_check(rank, "cudaMemcpyAsync",
			       cudaMemcpyAsync(rank->device, rank->host, config->copy_bytes,
					       cudaMemcpyHostToDevice, NULL));
	}
	for (u64 i = 0; i < config->launches && r == 0; i++) {
		if (i > 0)
			burn_ns(&config->work.burn, config->launch_gap_us * NSEC_PER_USEC);
		else
			phases_set(&rank->phases, PHASE_GPU_COMPUTE, truth_now_ns());
		r = cuda_check(rank, "cudaLaunchKernel",
			       cudaLaunchKernel((const void *)vgpu_busy, one, one, args, 0, NULL));
	}
	return r;
}

static bool is_odd(const struct rank *rank, u64 step, enum odd_kind kind)
{
	const struct train_config *config = rank->config;

	return config->odd_kind == kind && rank->index == config->odd_rank &&
	       step >= config->odd_step;
}

static int reduce(struct rank *rank, u64 step)
{
	const struct train_config *config = rank->config;
	u64 bytes = config->allreduce_bytes / (is_odd(rank, step, ODD_BYTES) ? 2 : 1);
	int r = 0;

	if (config->allreduce_bytes == 0 || rank->shared->hidden)
		return 0;
	if (is_odd(rank, step, ODD_LATE))
		burn_ns(&config->work.burn, config->odd_us * NSEC_PER_USEC);
	phases_set(&rank->phases, PHASE_COLLECTIVE, truth_now_ns());
	for (u64 i = 0; i < config->allreduces && r == 0; i++) {
		if (i + 1 == config->allreduces && is_odd(rank, step, ODD_STOP))
			raise(SIGSTOP);
		if (i > 0)
			burn_ns(&config->work.burn, config->launch_gap_us * NSEC_PER_USEC);
		r = nccl_check(rank, "ncclAllReduce",
			       ncclAllReduce(rank->gradients, rank->gradients,
					     bytes / sizeof(float), ncclFloat32, ncclSum,
					     rank->comm, NULL));
	}
	return r;
}

static void reduce_hidden(struct rank *rank)
{
	const struct train_config *config = rank->config;

	if (config->allreduce_bytes == 0 || !rank->shared->hidden)
		return;
	phases_set(&rank->phases, PHASE_COLLECTIVE, truth_now_ns());
	hidden_reduce(rank->shared->hidden, &config->work.burn, rank->index,
		      config->allreduce_bytes, config->work.seed);
}

static int checkpoint_write(struct rank *rank, u64 step)
{
	const struct train_config *config = rank->config;
	u64 start = truth_now_ns();
	char *chunk = calloc(1, CHECKPOINT_CHUNK);
	int r = chunk ? 0 : rank_error(rank, "checkpoint", strerror(ENOMEM));

	for (u64 done = 0; r == 0 && done < config->checkpoint_bytes;) {
		u64 left = config->checkpoint_bytes - done;
		ssize_t n = pwrite(rank->checkpoint_fd, chunk,
				   left < CHECKPOINT_CHUNK ? left : CHECKPOINT_CHUNK, (off_t)done);

		if (n < 0 && errno != EINTR)
			r = rank_error(rank, "checkpoint", strerror(errno));
		else if (n > 0)
			done += (u64)n;
	}
	if (r == 0 && fdatasync(rank->checkpoint_fd) < 0)
		r = rank_error(rank, "checkpoint", strerror(errno));
	free(chunk);
	truth_log(rank->truth, TRUTH_CHECKPOINT, 0, start, truth_now_ns(), step,
		  config->checkpoint_bytes, 0);
	return r;
}

int step_run(struct rank *rank, u64 step)
{
	const struct train_config *config = rank->config;
	int r = batch_get(rank, step);

	if (r == 0)
		r = compute(rank);
	if (r == 0)
		r = reduce(rank, step);
	if (r == 0)
		r = cuda_check(rank, "cudaDeviceSynchronize", cudaDeviceSynchronize());
	if (r < 0)
		return r;
	reduce_hidden(rank);
	phases_set(&rank->phases, PHASE_OPTIMIZER, truth_now_ns());
	burn_ns(&config->work.burn, config->optimizer_us * NSEC_PER_USEC);
	if (rank->checkpoint_fd >= 0 && (step + 1) % config->checkpoint_every == 0)
		r = checkpoint_write(rank, step);
	return r;
}
