/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A rank: setup, steps, cleanup. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/rank.h"

#define TRUTH_RECORDS (4U << 20)

int rank_error(const struct rank *rank, const char *what, const char *why)
{
	fprintf(stderr, "train: rank %llu: %s: %s\n", rank->index, what, why);
	return -EIO;
}

int cuda_check(const struct rank *rank, const char *what, cudaError_t error)
{
	return error == cudaSuccess ? 0 : rank_error(rank, what, cudaGetErrorString(error));
}

int nccl_check(const struct rank *rank, const char *what, ncclResult_t result)
{
	return result == ncclSuccess ? 0 : rank_error(rank, what, ncclGetErrorString(result));
}

static int gpu_open(struct rank *rank)
{
	const struct train_config *config = rank->config;
	struct cudaDeviceProp properties;
	int nr_devices = 0, device = 0;
	int r = cuda_check(rank, "cudaGetDeviceCount", cudaGetDeviceCount(&nr_devices));

	if (r == 0 && nr_devices == 0)
		r = rank_error(rank, "cudaGetDeviceCount", "no device found");
	if (r == 0) {
		device = (int)(rank->index % (u64)nr_devices);
		r = cuda_check(rank, "cudaSetDevice", cudaSetDevice(device));
	}
	/* As PyTorch does. The properties have the UUID of the device. */
	if (r == 0)
		r = cuda_check(rank, "cudaGetDeviceProperties",
			       cudaGetDeviceProperties_v2(&properties, device));
	if (r == 0)
		r = cuda_check(rank, "cudaSetDeviceFlags",
			       cudaSetDeviceFlags(workload_sync_flags(&config->work)));
	if (r == 0 && config->copy_bytes)
		r = cuda_check(rank, "cudaMalloc", cudaMalloc(&rank->device, config->copy_bytes));
	if (r == 0 && config->copy_bytes)
		r = cuda_check(rank, "cudaMallocHost",
			       cudaMallocHost(&rank->host, config->copy_bytes));
	if (r == 0 && config->allreduce_bytes)
		r = cuda_check(rank, "cudaMalloc",
			       cudaMalloc(&rank->gradients, config->allreduce_bytes));
	return r;
}

static int comm_open(struct rank *rank)
{
	const struct train_config *config = rank->config;
	bool is_nccl = config->allreduce_bytes && !rank->shared->hidden;
	int r = 0;

	if (is_nccl && rank->index == 0)
		r = nccl_check(rank, "ncclGetUniqueId", ncclGetUniqueId(&rank->shared->id));
	if (r < 0)
		return r;
	pthread_barrier_wait(&rank->shared->barrier);
	if (is_nccl)
		r = nccl_check(rank, "ncclCommInitRank",
			       ncclCommInitRank(&rank->comm, (int)config->ranks, rank->shared->id,
						(int)rank->index));
	return r;
}

static int checkpoint_open(struct rank *rank)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];

	rank->checkpoint_fd = -1;
	if (rank->index != 0 || rank->config->checkpoint_every == 0)
		return 0;
	snprintf(path, sizeof(path), "%s/train-checkpoint-XXXXXX", dir ? dir : "/tmp");
	rank->checkpoint_fd = mkstemp(path);
	if (rank->checkpoint_fd < 0)
		return rank_error(rank, path, strerror(errno));
	unlink(path);
	return 0;
}

static int data_open(struct rank *rank)
{
	const struct train_config *config = rank->config;
	int r;

	if (config->loading.loaders == 0)
		return 0;
	rank->ring = ring_new(config->loading.loaders * config->loading.prefetch);
	if (!rank->ring)
		return rank_error(rank, "batches", strerror(ENOMEM));
	r = loaders_start(&config->work, &config->loading, rank->index,
			  config->seconds > 0 ? ~0ULL : config->steps, rank->ring, rank->truth,
			  &rank->loaders);
	return r < 0 ? rank_error(rank, "loaders", strerror(-r)) : 0;
}

static int step_note(struct rank *rank, u64 step, u64 start_ns, u64 end_ns)
{
	truth_log(rank->truth, TRUTH_STEP, 0, start_ns, end_ns, step, rank->index, 0);
	if (rank->index != 0)
		return 0;
	if (rank->nr_steps == rank->room_steps) {
		u64 room = rank->room_steps ? rank->room_steps * 2 : 4096;
		u64 *steps_ns = realloc(rank->steps_ns, room * sizeof(*steps_ns));

		if (!steps_ns)
			return -ENOMEM;
		rank->steps_ns = steps_ns;
		rank->room_steps = room;
	}
	rank->steps_ns[rank->nr_steps++] = end_ns - start_ns;
	return 0;
}

/*
 * Rank 0 decides by time that a run ends two steps later. No other rank can complete
 * the collective of the next step before rank 0 joined it, so every rank sees the
 * decision in time and no rank waits alone in a collective.
 */
static u64 stop_at(struct rank *rank, u64 step, u64 elapsed_ns)
{
	u64 *at = &rank->shared->stop_at;

	if (rank->index == 0 && rank->config->seconds > 0 &&
	    (double)elapsed_ns >= rank->config->seconds * NSEC_PER_SEC &&
	    __atomic_load_n(at, __ATOMIC_ACQUIRE) > step + 2)
		__atomic_store_n(at, step + 2, __ATOMIC_RELEASE);
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static int steps_run(struct rank *rank)
{
	u64 begin = truth_now_ns(), start = begin;
	int r = 0;

	for (u64 step = 0; r == 0 && step < stop_at(rank, step, start - begin); step++) {
		u64 end;

		r = step_run(rank, step);
		end = truth_now_ns();
		if (r == 0)
			r = step_note(rank, step, start, end);
		start = end;
	}
	if (r == 0 && rank->index == 0) {
		rank->shared->seconds = (double)(start - begin) / NSEC_PER_SEC;
		rank->shared->steps = truth_quantiles_of(rank->steps_ns, rank->nr_steps);
	}
	return r;
}

static int rank_open(struct rank *rank)
{
	int r = checkpoint_open(rank);

	if (r == 0)
		r = data_open(rank);
	if (r == 0)
		r = gpu_open(rank);
	if (r == 0)
		r = comm_open(rank);
	return r;
}

static int rank_close(struct rank *rank)
{
	int r = 0;

	if (rank->ring)
		ring_stop(rank->ring);
	if (rank->loaders)
		r = loaders_finish(rank->loaders);
	ring_free(rank->ring);
	if (rank->comm)
		ncclCommDestroy(rank->comm);
	if (rank->device)
		cudaFree(rank->device);
	if (rank->host)
		cudaFreeHost(rank->host);
	if (rank->gradients)
		cudaFree(rank->gradients);
	if (rank->checkpoint_fd >= 0)
		close(rank->checkpoint_fd);
	free(rank->steps_ns);
	return r;
}

int rank_run(const struct train_config *config, struct train_shared *shared, u64 index)
{
	struct rank rank = {
		.config = config,
		.shared = shared,
		.index = index,
		.kernel_ns = config->kernel_us * NSEC_PER_USEC,
		.checkpoint_fd = -1,
	};
	int r = 0, r_close;

	if (index == config->slow_rank)
		rank.kernel_ns = (u64)((double)rank.kernel_ns * config->slow_factor);
	if (config->work.truth)
		r = truth_open(config->work.truth, "train", TRUTH_RECORDS, &rank.truth);
	if (r < 0)
		return rank_error(&rank, config->work.truth, strerror(-r));
	phases_begin_launcher(&rank.phases, rank.truth, PHASE_UNKNOWN);
	r = rank_open(&rank);
	if (r == 0) {
		pthread_barrier_wait(&shared->barrier);
		r = steps_run(&rank);
	}
	r_close = rank_close(&rank);
	phases_end(&rank.phases, TRUTH_ROLE_LAUNCHER, truth_now_ns());
	truth_free(rank.truth);
	return r < 0 ? r : r_close;
}
