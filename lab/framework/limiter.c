/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rate limiter of FSDP: before a unit gathers its parameters, the launcher waits for
 * the unit before the previous one, so that only two units need memory. Newer work is
 * queued during the wait, so the device never runs dry.
 */
#include "base/macros.h"
#include "framework/framework.h"

#define UNITS_AHEAD 2

struct limiter {
	cudaStream_t gather_stream;
	cudaEvent_t gathered;
	cudaEvent_t done[UNITS_AHEAD];
	u64 nr_units;
};

static void unit_run(struct rank *rank, struct limiter *limiter)
{
	cudaEvent_t done = limiter->done[limiter->nr_units % UNITS_AHEAD];

	if (limiter->nr_units >= UNITS_AHEAD)
		device_wait(rank, &rank->did, done);
	if (!rank_failed(rank))
		device_nccl(rank, "ncclAllGather",
			    ncclAllGather(rank->gradients, rank->gradients,
					  rank->config->collective_bytes / rank->config->ranks,
					  ncclInt8, rank->comm, limiter->gather_stream));
	device_record(rank, limiter->gathered, limiter->gather_stream);
	device_follow(rank, NULL, limiter->gathered);
	device_kernels(rank, &rank->did, NULL, rank->config->launches);
	device_record(rank, done, NULL);
	limiter->nr_units++;
}

void limiter_run(struct rank *rank)
{
	struct limiter limiter = {
		.gather_stream = device_stream(rank),
		.gathered = device_event(rank),
	};

	for (size_t i = 0; i < ARRAY_SIZE(limiter.done); i++)
		limiter.done[i] = device_event(rank);
	while (rank_next_step(rank)) {
		train_clear_gradients(rank, NULL);
		for (u64 unit = 0; unit < rank->config->passes; unit++)
			unit_run(rank, &limiter);
		train_optimizer(rank, NULL);
	}
}
