/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"
#include "work/burn.h"

/*
 * A collective that no probe can see: the ranks pass chunks around a ring, each copied by
 * the CPU, and wait for each other on futexes in a shared-memory file that is named as
 * NCCL's are. The calls block, so the device has nothing to do meanwhile.
 */
struct hidden;

/* Made before the ranks are forked, which share it. NULL with errno when it cannot be. */
struct hidden *hidden_new(u64 nr_ranks);

/* Returns when the rank has all chunks of its predecessor. */
void hidden_reduce(struct hidden *hidden, const struct burn *burn, u64 rank, u64 bytes, u64 seed);
