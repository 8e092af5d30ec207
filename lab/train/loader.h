/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "train/ring.h"
#include "train/train.h"

struct loaders;

/*
 * Starts the loaders of a rank, as processes or as threads that log to `truth`.
 * nr_batches is how many the rank will take, or more when it does not know.
 */
int loaders_start(const struct train_config *config, u64 rank, u64 nr_batches, struct ring *ring,
		  struct truth *truth, struct loaders **ret);

/* Can the one that makes this batch no longer do so? */
bool loaders_lost(struct loaders *loaders, u64 batch);

/* Waits for them to end (ring_stop() makes them) and frees. Negative when one failed. */
int loaders_finish(struct loaders *loaders);
