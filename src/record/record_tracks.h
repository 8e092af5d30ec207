/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tracks of a recording: processes, threads, GPUs. The kernel reuses pids and tids, so
 * each number has a list of all tracks that had it, oldest first.
 */
#include <stdbool.h>
#include "abi/types.h"

enum track_kind {
	TRACK_PROCESS,
	TRACK_THREAD,
	TRACK_GPU,
};

struct track {
	enum track_kind kind;
	u32 id;
	u64 which; /* distinguishes tracks with the same number; 0: known only from events */
	u64 uuid;
	struct track *next; /* the next track with the same number */
	bool gone;

	/* The current slice: a phase or a role. */
	bool open;
	u32 value;
	u64 since_ns;
	u64 step_ns; /* end of the last step, or 0 */

	/* Values of the previous snapshot; seen_ns is 0 when there is no previous snapshot. */
	u64 seen_ns;
	u64 busy_ns;
	u64 runqueue_ns;
};

/* Zeroed, it is empty. */
struct tracks {
	void *tree;
};

/* The newest track with this number, or NULL. */
struct track *tracks_newest(const struct tracks *tracks, enum track_kind kind, u32 id);
/* The oldest track with this number that is not gone, or NULL. */
struct track *tracks_present(const struct tracks *tracks, enum track_kind kind, u32 id);
/* Adds a track, which becomes the newest with this number. NULL: out of memory. */
struct track *tracks_add(struct tracks *tracks, enum track_kind kind, u32 id, u64 which);

void tracks_for_each(const struct tracks *tracks, void (*visit)(void *ctx, struct track *track),
		     void *ctx);
void tracks_done(struct tracks *tracks);
