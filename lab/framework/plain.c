/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plain training loop, which launches and never waits, except for batches and for
 * the loss. The defaults of a job decide what limits it: the device, the loaders or the
 * launcher.
 */
#include "framework/framework.h"

void plain_run(struct rank *rank)
{
	while (rank_next_step(rank)) {
		train_batch(rank, NULL);
		train_clear_gradients(rank, NULL);
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
	}
}
