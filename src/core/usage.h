/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * PyTorch's allocator reports what it has given out and what it has reserved at each allocation and
 * release of a tensor. It holds its lock while it reports, so that a GPU has one writer at a time.
 * Without the lock, a value could be lost, but none could be invented.
 */
#include <stdbool.h>
#include "abi/usage.h"

static inline void usage_add(struct usage_part *part, u64 allocated, u64 reserved)
{
	if (!part->nr || allocated > part->allocated_most) {
		part->allocated_most = allocated;
		part->reserved_then = reserved;
	}
	part->allocated_bytes = allocated;
	part->reserved_bytes = reserved;
	part->nr++;
}

/*
 * Returns whether anything is known of a part. What was in use at the end of a part is in use at
 * the begin of the next one. A part without reports has the values of the one before.
 */
bool usage_of_part(const struct usage *usage, u32 index, struct usage_part *ret);
/* One more than the index of the last part with a report. */
u32 usage_nr_parts(const struct usage *usage);
