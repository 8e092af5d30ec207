/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What history.c keeps and history_json.c reads. */
#include "serve/history.h"

#define CHUNK_SLOTS 60

struct rank_chunk {
	struct rank_chunk *next;
	u32 nr;
	u32 pad;
	struct rank_slot slots[CHUNK_SLOTS];
};

/* The resolutions. */
enum rank_resolution {
	RESOLUTION_FINE,
	RESOLUTION_COARSE,
	RESOLUTION_NR,
};

struct rank_level_row {
	u32 step_s;
	u32 span_s;
};
extern const struct rank_level_row rank_levels[RESOLUTION_NR];

/* Slots by time, oldest first. */
struct rank_lane {
	struct rank_chunk *first;
	struct rank_chunk *last;
	u32 nr_chunks;
};

/* The counters of a process at the last snapshot, in the units of a slot. */
struct rank_counters {
	u64 monotonic_ns;
	u64 values[RANK_VALUE_NR];
};

struct rank {
	u32 pid;
	u32 uid;
	u32 nr_ranks;
	u64 start_ns;
	s32 rank;
	u32 gpu;
	bool is_present; /* in the last snapshot */
	u64 seen_ms;
	struct rank_counters last;
	struct rank_lane lanes[RESOLUTION_NR];
	char comm[SNAPSHOT_COMM_LEN];
	char job[JOB_CGROUP_LEN];
	char name[JOB_NAME_LEN];
};

struct rank_history {
	struct rank **ranks;
	u32 nr;
	u32 capacity;
	u32 hint; /* the rank after the one that was found last */
	u64 now_ms;
	size_t bytes;
	size_t bytes_max;
	u64 nr_thinned;
};
