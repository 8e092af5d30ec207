/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of one task, in BPF task storage. Storage starts as zeros, which is the state
 * of a new task: in Unknown since 0, without a GPU. User space has a copy.
 */
#include "core/phase.h"

struct task_state {
	struct phase_signals signals;
	struct phase_candidate candidate;
	u64 phase_ns[PHASE_NR]; /* time in each phase up to phase_since_ns */
	u64 phase_since_ns;	/* when the current phase began */
	u64 nr_transitions;	/* changes of phase, from any evidence */
	u32 pid;
	u32 phase;
	u32 gpu_id; /* its main GPU, as numbered in the process; valid if has_gpu is set */
	u8 has_gpu;
	u8 inferred; /* the phase came from the rule, not from a call boundary */
	u8 pad[2];
};
_Static_assert(sizeof(struct task_state) == 112, "shared with BPF");

/* Books the time in the old phase and enters the new one. Changes are counted only here. */
static inline void task_transition(struct task_state *t, u32 phase, u64 now)
{
	if (t->phase_since_ns > 0 && now > t->phase_since_ns)
		t->phase_ns[phase_of(t->phase)] += now - t->phase_since_ns;
	if (phase_of(phase) != phase_of(t->phase))
		t->nr_transitions++;
	t->phase = phase_of(phase);
	t->phase_since_ns = now;
}

/* Applies inferred evidence to the state, with the stability count. */
static inline void task_detect(const struct phase_config *c, struct task_state *t,
			       const struct phase_signals *signals, u64 now)
{
	enum phase phase = phase_detect(c, signals, &t->candidate, t->phase);

	/* Read the phase again: the verifier of 6.1 does not connect two checks of one value. */
	asm volatile("" ::: "memory");
	if (phase == phase_of(t->phase))
		return;
	task_transition(t, phase, now);
	t->inferred = phase != PHASE_UNKNOWN;
}
