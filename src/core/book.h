/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A memory account: bytes allocated now, the peak, and the number of allocations and
 * frees. Threads update it concurrently with atomic operations, which are the same in
 * BPF and in user space.
 */
#include "abi/types.h"

struct memory_book {
	u64 current_bytes;
	u64 peak_bytes;
	u64 nr_allocs;
	u64 nr_frees;
};
_Static_assert(sizeof(struct memory_book) == 32, "shared with BPF");

/* A try fails only if another thread changed the peak, so this many tries are enough. */
#define BOOK_PEAK_TRIES 16

static inline void book_alloc(struct memory_book *book, u64 bytes)
{
	u64 now = __sync_fetch_and_add(&book->current_bytes, bytes) + bytes;
	u64 peak = book->peak_bytes;

	__sync_fetch_and_add(&book->nr_allocs, 1);
	for (u32 i = 0; i < BOOK_PEAK_TRIES && peak < now; i++) {
		u64 seen = __sync_val_compare_and_swap(&book->peak_bytes, peak, now);

		if (seen == peak)
			return;
		peak = seen;
	}
}

static inline void book_free(struct memory_book *book, u64 bytes)
{
	__sync_fetch_and_add(&book->current_bytes, -bytes);
	__sync_fetch_and_add(&book->nr_frees, 1);
}
