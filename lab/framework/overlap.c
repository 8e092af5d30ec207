/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DDP: the backward pass fills buckets of gradients. Each bucket is reduced on a side
 * stream while the next one is computed; the optimizer waits for the side stream, on the
 * device. No thread waits.
 */
#include "framework/framework.h"

static void reduce(struct rank *rank, cudaStream_t stream)
{
	if (!rank_failed(rank))
		device_nccl(rank, "ncclAllReduce",
			    ncclAllReduce(rank->gradients, rank->gradients,
					  rank->config->collective_bytes, ncclInt8, ncclSum,
					  rank->comm, stream));
}

void overlap_run(struct rank *rank)
{
	const struct framework_config *config = rank->config;
	cudaStream_t side = device_stream(rank);
	cudaEvent_t ready = device_event(rank), reduced = device_event(rank);

	while (rank_next_step(rank)) {
		train_batch(rank, NULL);
		train_clear_gradients(rank, NULL);
		device_kernels(rank, &rank->did, NULL, config->launches);
		for (u64 bucket = 0; bucket < config->passes; bucket++) {
			device_kernels(rank, &rank->did, NULL, config->launches / config->passes);
			device_record(rank, ready, NULL);
			device_follow(rank, side, ready);
			reduce(rank, side);
		}
		device_record(rank, reduced, side);
		device_follow(rank, NULL, reduced);
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
	}
}
