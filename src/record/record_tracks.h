/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whoever a recording tells of: processes, threads, GPUs. Numbers of processes and threads are
 * used again, so each number has a list of those who had it, in their order.
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
	u64 which; /* tells those of one number apart; 0: known by events only */
	u64 uuid;
	struct track *next; /* who had the number after it */
	bool gone;

	/* The slice it is in: a phase, or a role. */
	bool open;
	u32 value;
	u64 since_ns;
	u64 step_ns; /* when its last step ended, or 0 */

	/* At the snapshot before; seen_ns is 0 when there is none. */
	u64 seen_ns;
	u64 busy_ns;
	u64 runqueue_ns;
};

/* All zero is an empty one. */
struct tracks {
	void *tree;
};

/* The newest of a number, NULL when there is none. */
struct track *tracks_newest(const struct tracks *tracks, enum track_kind kind, u32 id);
/* The oldest that is not gone, likewise. */
struct track *tracks_present(const struct tracks *tracks, enum track_kind kind, u32 id);
/* One more, the newest from now on; NULL for want of memory. */
struct track *tracks_add(struct tracks *tracks, enum track_kind kind, u32 id, u64 which);

void tracks_for_each(const struct tracks *tracks, void (*visit)(void *ctx, struct track *track),
		     void *ctx);
void tracks_done(struct tracks *tracks);
