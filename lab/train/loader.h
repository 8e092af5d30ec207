/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "train/ring.h"
#include "train/train.h"

struct loaders;

/*
 * Starts the loaders of a rank, as processes or as threads that log to `truth`.
 * nr_batches is at least the number of batches that the rank will take.
 */
int loaders_start(const struct train_config *config, u64 rank, u64 nr_batches, struct ring *ring,
		  struct truth *truth, struct loaders **ret);

/* Returns whether the loader of this batch can no longer deliver it. */
bool loaders_lost(struct loaders *loaders, u64 batch);

/* Waits until all loaders end (ring_stop() stops them) and frees. Negative if one failed. */
int loaders_finish(struct loaders *loaders);
