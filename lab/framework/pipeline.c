/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pipeline parallel: every rank is a stage and passes activations to the next stage, then
 * gradients to the previous one, for several small batches per step. The stages have
 * different amounts of work by design: no rank is a straggler.
 */
#include "base/macros.h"
#include "framework/framework.h"

static const u64 stage_percent[] = { 100, 60, 80 };

static void send(struct rank *rank, u64 peer)
{
	if (!rank_failed(rank))
		device_nccl(rank, "ncclSend",
			    ncclSend(rank->gradients, rank->config->collective_bytes, ncclInt8,
				     (int)peer, rank->comm, NULL));
}

static void receive(struct rank *rank, u64 peer)
{
	if (!rank_failed(rank))
		device_nccl(rank, "ncclRecv",
			    ncclRecv(rank->gradients, rank->config->collective_bytes, ncclInt8,
				     (int)peer, rank->comm, NULL));
}

static void forward(struct rank *rank)
{
	if (rank->index > 0)
		receive(rank, rank->index - 1);
	device_kernels(rank, &rank->did, NULL, rank->config->launches);
	if (rank->index + 1 < rank->config->ranks)
		send(rank, rank->index + 1);
}

static void backward(struct rank *rank)
{
	if (rank->index + 1 < rank->config->ranks)
		receive(rank, rank->index + 1);
	device_kernels(rank, &rank->did, NULL, rank->config->launches);
	if (rank->index > 0)
		send(rank, rank->index - 1);
}

void pipeline_run(struct rank *rank)
{
	rank->kernel_ns =
		rank->kernel_ns * stage_percent[rank->index % ARRAY_SIZE(stage_percent)] / 100;
	while (rank_next_step(rank)) {
		train_clear_gradients(rank, NULL);
		for (u64 pass = 0; pass < rank->config->passes; pass++)
			forward(rank);
		for (u64 pass = 0; pass < rank->config->passes; pass++)
			backward(rank);
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
	}
}
