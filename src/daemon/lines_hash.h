/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Hashes of values that the sampled process chooses. With a fixed function, it could choose them so
 * that all have one hash, and each search of zerneld's only loop would visit all of them. Each
 * reply has random multipliers, which the process does not know. Only one word of a frame has 64
 * bits: two of them, each multiplied by an odd number, could differ in their highest bits and be
 * the same.
 */
#include "abi/python.h"

struct lines_hash {
	u64 code, instruction, lines, tgid, handle, sum, mix; /* random; made odd before each use */
};

/*
 * The upper bits of a product depend on all bits below, so they are mixed in before the next one.
 * With a single round, values that differ in their upper bits only are multiples of one number, and
 * for 2 % of the random numbers many of these have the same hash.
 */
static inline u32 lines_hash_mix(const struct lines_hash *hash, u64 value)
{
	value = (value ^ value >> 32) * (hash->sum | 1);
	return (u32)((value ^ value >> 32) * (hash->mix | 1) >> 32);
}

static inline u32 lines_hash_frame(const struct lines_hash *hash, u32 tgid,
				   const struct python_frame *frame)
{
	return lines_hash_mix(hash, frame->code * (hash->code | 1) +
					    frame->instruction * (hash->instruction | 1) +
					    frame->lines * (hash->lines | 1) +
					    tgid * (hash->tgid | 1));
}

static inline u32 lines_hash_handle(const struct lines_hash *hash, u64 handle)
{
	return lines_hash_mix(hash, handle * (hash->handle | 1));
}
