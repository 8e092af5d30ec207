/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mixture of experts: every layer reads on the host how many tokens each expert gets
 * (`.tolist()`), which is a sync, before it launches the experts.
 */
#include "framework/framework.h"

void moe_run(struct rank *rank)
{
	while (rank_next_step(rank)) {
		train_clear_gradients(rank, NULL);
		for (u64 layer = 0; layer < rank->config->passes; layer++) {
			device_kernels(rank, &rank->did, NULL, rank->config->launches);
			device_item(rank, &rank->did, NULL);
		}
		train_optimizer(rank, NULL);
	}
}
