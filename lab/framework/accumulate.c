/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gradient accumulation: several forward and backward passes for one optimizer step. */
#include "framework/framework.h"

void accumulate_run(struct rank *rank)
{
	while (rank_next_step(rank)) {
		train_clear_gradients(rank, NULL);
		for (u64 pass = 0; pass < rank->config->passes; pass++) {
			train_batch(rank, NULL);
			device_kernels(rank, &rank->did, NULL, rank->config->launches);
		}
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
	}
}
