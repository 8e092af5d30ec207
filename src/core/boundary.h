/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Certain evidence: a call boundary changes the phase at that very moment. The
 * rules are one table, phase now x what happened -> phase after, applied to the
 * process whose launcher made the call. Compiled for BPF and user space.
 */
#include "core/task.h"

enum boundary {
	BOUNDARY_LAUNCH,	  /* a launch, or a copy to the device */
	BOUNDARY_COLLECTIVE,	  /* a collective call is entered */
	BOUNDARY_COLLECTIVE_DONE, /* it returns, where calls block */
	BOUNDARY_SYNC_DONE,	  /* a device sync returns */
	BOUNDARY_DATA_WAIT,	  /* the launcher goes to sleep outside of any call */
	BOUNDARY_DATA_READY,	  /* it was woken */
	BOUNDARY_NR,
};

/* Unlisted is 0, and that is not "Unknown" but "no change": hence the shift by one. */
#define BOUNDARY_TO(phase) ((phase) + 1)

static const u8 boundary_rules[BOUNDARY_NR][PHASE_NR] = {
	/* Work behind a collective belongs to it until the sync that covers both. */
	[BOUNDARY_LAUNCH] = {
		[PHASE_UNKNOWN] = BOUNDARY_TO(PHASE_GPU_COMPUTE),
		[PHASE_DATA_LOADING] = BOUNDARY_TO(PHASE_GPU_COMPUTE),
		[PHASE_OPTIMIZER] = BOUNDARY_TO(PHASE_GPU_COMPUTE),
	},
	[BOUNDARY_COLLECTIVE] = {
		[PHASE_UNKNOWN] = BOUNDARY_TO(PHASE_COLLECTIVE),
		[PHASE_DATA_LOADING] = BOUNDARY_TO(PHASE_COLLECTIVE),
		[PHASE_GPU_COMPUTE] = BOUNDARY_TO(PHASE_COLLECTIVE),
		[PHASE_OPTIMIZER] = BOUNDARY_TO(PHASE_COLLECTIVE),
	},
	[BOUNDARY_COLLECTIVE_DONE] = {
		[PHASE_COLLECTIVE] = BOUNDARY_TO(PHASE_OPTIMIZER),
	},
	/* A sync that waited for nothing ends nothing. */
	[BOUNDARY_SYNC_DONE] = {
		[PHASE_GPU_COMPUTE] = BOUNDARY_TO(PHASE_OPTIMIZER),
		[PHASE_COLLECTIVE] = BOUNDARY_TO(PHASE_OPTIMIZER),
	},
	/* While work is queued the device is fed, whatever the launcher waits for. */
	[BOUNDARY_DATA_WAIT] = {
		[PHASE_UNKNOWN] = BOUNDARY_TO(PHASE_DATA_LOADING),
		[PHASE_OPTIMIZER] = BOUNDARY_TO(PHASE_DATA_LOADING),
	},
	[BOUNDARY_DATA_READY] = {
		[PHASE_DATA_LOADING] = BOUNDARY_TO(PHASE_UNKNOWN),
	},
};

/* An optimizer step that outlasts the burst bound was Unknown from the bound on. */
static inline void boundary_expire(const struct phase_config *c, struct task_state *t, u64 now)
{
	u64 bound = t->phase_since_ns + c->optimizer_burst_max_ns;

	if (t->phase == PHASE_OPTIMIZER && !t->inferred && now > bound)
		task_transition(t, PHASE_UNKNOWN, bound);
}

/* Applies what happened at `now`; true when the phase changed. */
static inline bool boundary_cross(const struct phase_config *c, struct task_state *t, u32 boundary,
				  u64 now)
{
	u64 what = boundary, from; /* of the verifier's own width */
	u8 to;

	boundary_expire(c, t, now);
	from = phase_of(t->phase);
	/* Work is never behind a collective that is only inferred: see process_rank_ready(). */
	if (from == PHASE_COLLECTIVE && t->inferred &&
	    (what == BOUNDARY_LAUNCH || what == BOUNDARY_COLLECTIVE))
		from = PHASE_UNKNOWN;
	/* Without the barrier the compiler proves the checks away, and the verifier misses them. */
	asm volatile("" : "+r"(from), "+r"(what));
	if (what >= BOUNDARY_NR || from >= PHASE_NR)
		return false;
	to = boundary_rules[what][from];
	if (!to)
		return false;
	task_transition(t, to - 1, now);
	t->inferred = 0;
	return true;
}
