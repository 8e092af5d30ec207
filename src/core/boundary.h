/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Certain evidence: a call boundary changes the phase at the moment of the call. One
 * table maps the boundary and the current phase to the next phase. It applies to the
 * process whose launcher made the call. Compiled for BPF and user space.
 */
#include "core/task.h"

enum boundary {
	BOUNDARY_LAUNCH,	  /* a launch or a copy to the device is called */
	BOUNDARY_COLLECTIVE,	  /* a collective call is entered */
	BOUNDARY_COLLECTIVE_DONE, /* a blocking collective call returns */
	BOUNDARY_SYNC_DONE,	  /* a device sync returns */
	BOUNDARY_DATA_WAIT,	  /* the launcher goes to sleep outside of any runtime call */
	BOUNDARY_DATA_READY,	  /* the launcher has the data */
	BOUNDARY_NR,
};

/* An entry that is not listed is 0 and means "no change", so phases are stored plus one. */
#define BOUNDARY_TO(phase) ((phase) + 1)

static const u8 boundary_rules[BOUNDARY_NR][PHASE_NR] = {
	/* Work queued behind a collective belongs to it until the sync that covers both. */
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
	/* A sync in any other phase waited for no queued work and changes nothing. */
	[BOUNDARY_SYNC_DONE] = {
		[PHASE_GPU_COMPUTE] = BOUNDARY_TO(PHASE_OPTIMIZER),
		[PHASE_COLLECTIVE] = BOUNDARY_TO(PHASE_OPTIMIZER),
	},
	/* While the GPU has queued work, a sleeping launcher does not change the phase. */
	[BOUNDARY_DATA_WAIT] = {
		[PHASE_UNKNOWN] = BOUNDARY_TO(PHASE_DATA_LOADING),
		[PHASE_OPTIMIZER] = BOUNDARY_TO(PHASE_DATA_LOADING),
	},
	[BOUNDARY_DATA_READY] = {
		[PHASE_DATA_LOADING] = BOUNDARY_TO(PHASE_UNKNOWN),
	},
};

/* An optimizer step that exceeds the burst bound becomes Unknown, as of the bound. */
static inline void boundary_expire(const struct phase_config *c, struct task_state *t, u64 now)
{
	u64 bound = t->phase_since_ns + c->optimizer_burst_max_ns;

	if (t->phase == PHASE_OPTIMIZER && !t->inferred && now > bound)
		task_transition(t, PHASE_UNKNOWN, bound);
}

/* Applies a boundary that was crossed at `now`; true if the phase changed. */
static inline bool boundary_cross(const struct phase_config *c, struct task_state *t, u32 boundary,
				  u64 now)
{
	u64 what = boundary, from; /* 64 bits wide, as the registers that the verifier tracks */
	u8 to;

	boundary_expire(c, t, now);
	from = phase_of(t->phase);
	/* An inferred collective ends at the next call: see process_rank_ready(). */
	if (from == PHASE_COLLECTIVE && t->inferred &&
	    (what == BOUNDARY_LAUNCH || what == BOUNDARY_COLLECTIVE))
		from = PHASE_UNKNOWN;
	/* Without this barrier the compiler removes the checks, which the verifier needs. */
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
