/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What threads that wait for the GPU show about it. While such a thread sleeps or spins, the GPU
 * works for it. While it is runnable and has no CPU, it shows nothing: the GPU may have finished
 * in the meantime.
 */
#include "bpf/signals/state.bpf.h"

/* Brings the account in line with the ledger. True when the GPU has no work any more. */
static inline bool gpu_settle(struct process_state *process, u64 now)
{
	struct process_ledger *ledger = ledger_of(process);
	bool is_done = ledger_is_done(&ledger->ledger);
	u32 gpu = ledger->nr_waiting ? IDLE_GPU_BUSY : is_done ? IDLE_GPU_DONE : IDLE_GPU_OPEN;

	if (process->idle.gpu == gpu)
		return is_done;
	if (gpu == IDLE_GPU_DONE)
		ledger->done_ns = now;
	process_write_begin(process);
	idle_set_gpu(&process->idle, gpu, now);
	process_write_end(process);
	return is_done;
}

/* Accounts what a thread did in its wait for the GPU. `doing`: what it does from now on. */
static inline void gpu_waiter_does(struct thread_state *thread, u32 doing, u64 now)
{
	u32 did = thread->doing;

	if (!thread->is_waiting)
		return;
	barrier_var(did);
	thread->doing_ns[did & (GPU_WAIT_SLOTS - 1)] += now - thread->doing_since_ns;
	thread->doing = doing;
	thread->doing_since_ns = now;
}

/* Whether a thread that waits counts as evidence from now on. */
static inline void gpu_waiter_counts(struct thread_state *thread, struct process_state *process,
				     bool counts, u64 now)
{
	if (!thread->is_waiting || thread->is_evidence == counts)
		return;
	thread->is_evidence = counts;
	__sync_fetch_and_add(&ledger_of(process)->nr_waiting, counts ? 1 : -1);
	gpu_settle(process, now);
}
