/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* The state of one ML process; the kernel holds the truth, user space mirrors it. */
#include "abi/signals.h"
#include "core/boundary.h"

struct process_state {
	struct task_state task;
	u64 nr_launches[LEVEL_NR];
	u64 nr_syncs[LEVEL_NR];
	u64 nr_copies[LEVEL_NR];
	u64 nr_collectives;
	u64 collective_bytes;
	s32 rank; /* valid when nr_ranks is not 0 */
	u32 nr_ranks;
	u32 launcher_tid;  /* 0 until somebody launched */
	u32 consumer_tgid; /* for a loader: whom it feeds */
	u8 waits_for_data;
	u8 pad[7];
	char comm[COMM_LEN];
};

/* Sizes of ncclDataType_t, by its values. */
static const u8 collective_datatype_bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

static inline u64 collective_bytes(u64 count, u64 datatype)
{
	if (datatype >= sizeof(collective_datatype_bytes))
		return 0;
	return count * collective_datatype_bytes[datatype];
}
