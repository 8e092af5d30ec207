/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/types.h"
#include "work/burn.h"

/*
 * A collective without probes: the ranks pass chunks around a ring, copied by the CPU,
 * and wait for the previous rank on futexes in a shared-memory file that is named like
 * the files of NCCL. The calls block, so the GPU has no work during a call.
 */
struct hidden;

/* Creates it before the ranks are forked, which share it. Returns NULL with errno on failure. */
struct hidden *hidden_new(u64 nr_ranks);

/* Returns when the rank has all chunks of the previous rank. */
void hidden_reduce(struct hidden *hidden, const struct burn *burn, u64 rank, u64 bytes, u64 seed);
