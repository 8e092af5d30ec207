/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Durations of collectives and of waits for other ranks.
 *
 * A collective of MPI blocks and lasts from its entry to its return. A collective
 * of NCCL returns at once and is complete at the latest when the next sync
 * returns. Each collective that is queued at that time gives a sample
 * (core/collectives.h).
 *
 * Waits for other ranks (HIST_RANK_WAIT) are: a blocking collective or barrier,
 * from entry to return; the sleep of a thread on futexes inside a call that
 * does not block by design; and a sync, from entry to return, if a collective was
 * queued before it. The last one is an upper bound, because the sync also waits
 * for the work that the GPU does before the collective. A process that is alone
 * in its world waits for no rank.
 *
 * Accepted race: if a sync returns at the same time as the collective call of
 * another thread, that collective may be counted as complete.
 */
#include "bpf/signals/state.bpf.h"

static inline struct open_collectives *collectives_of(struct task_struct *p, u64 flags)
{
	struct task_struct *leader = p->group_leader;

	return leader ? bpf_task_storage_get(&collectives, leader, NULL, flags) : NULL;
}

static inline void collective_queued(struct task_struct *p, u32 operation, u64 entered_ns)
{
	struct open_collectives *open = collectives_of(p, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 slot;

	operation &= COLLECTIVE_NR - 1;
	if (!open) {
		__sync_fetch_and_add(&nr_dropped_samples, 1);
		return;
	}
	slot = collectives_slot(__sync_fetch_and_add(&open->nr[operation], 1));
	barrier_var(slot);
	if (slot < COLLECTIVES_KEPT)
		open->entered_ns[operation][slot] = entered_ns;
}

/* Whether a collective was queued before that time. The oldest one is in the first slot. */
static inline bool collectives_precede(const struct open_collectives *open, u64 time_ns)
{
	for (u32 i = 0; i < COLLECTIVE_NR; i++)
		if (open->nr[i] && open->entered_ns[i][0] < time_ns)
			return true;
	return false;
}

/* The context of a loop over the recorded times of one operation. */
struct covered {
	struct process_state *process;
	struct open_collectives *open;
	u64 nr;
	u64 now;
	u32 operation;
};

static long collective_covered(u64 slot, struct covered *covered)
{
	u32 operation = covered->operation & (COLLECTIVE_NR - 1);
	u64 weight, *entered, since;

	if (slot >= COLLECTIVES_KEPT)
		return 1;
	/* Keep the compiler from computing the address before the check. */
	barrier_var(slot);
	weight = collectives_weight((u32)slot, covered->nr);
	if (!weight)
		return 1;
	entered = &covered->open->entered_ns[operation][slot];
	since = *entered;
	*entered = 0;
	/* 0: another thread is about to write the time, so its call began just now. */
	process_sample_times(covered->process, HIST_COLLECTIVE + operation,
			     since && since < covered->now ? covered->now - since : 0, weight);
	return 0;
}

/* Every collective that was queued before a sync is complete when the sync returns. */
static inline void collectives_done(struct process_state *process, struct open_collectives *open,
				    u64 now)
{
	struct covered covered = { .process = process, .open = open, .now = now };

	for (u32 i = 0; i < COLLECTIVE_NR; i++) {
		if (!open->nr[i])
			continue;
		covered.operation = i;
		covered.nr = __sync_lock_test_and_set(&open->nr[i], 0);
		bpf_loop(COLLECTIVES_KEPT, collective_covered, &covered, 0);
	}
}

/* A process that is alone in its world waits for no other rank. */
static inline void rank_waited(struct process_state *process, u64 ns)
{
	if (process->nr_ranks != 1)
		process_sample(process, HIST_RANK_WAIT, ns);
}
