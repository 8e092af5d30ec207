/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Calls that give work to the GPU. The ledger has the work from the entry of the call on, because
 * another thread may wait for it before the call returns. If the call fails, its work is taken
 * out of the ledger.
 *
 * What follows for the process (its launcher, its phase, its account) follows at the return,
 * with the time of the entry, so that a program whose calls all fail changes no account. A call
 * that changes nothing for the process needs no return: if it fails, the next sync completes its
 * work. On kernels without uprobe sessions, launches and asynchronous copies have no return: what
 * follows from them follows at the entry, and work of a call that fails stays open until a sync.
 */
#include "bpf/signals/ledger.bpf.h"

/* Fills in everything but the time. For calls without a frame. */
static inline bool feed_found(struct pt_regs *ctx, struct traced_call *call)
{
	call->cookie = bpf_get_attach_cookie(ctx);
	call->p = bpf_get_current_task_btf();
	call->row = row_of(call->cookie);
	call->thread = thread_get(call->p);
	call->process = process_get(call->p);
	return call->row && call->thread && call->process;
}

/* The same at the return of the call. */
static inline bool feed_returned(struct traced_call *call)
{
	call->p = bpf_get_current_task_btf();
	call->thread = thread_find(call->p);
	call->process = process_find(call->p);
	return call->thread && call->process;
}

static inline bool call_failed(struct pt_regs *ctx)
{
	return (s32)PT_REGS_RC(ctx) != 0;
}

/* The position of the work; 0 when it was captured into a graph. */
static inline u64 work_queue(struct pt_regs *ctx, const struct traced_call *call, u32 slot)
{
	u64 position = ledger_queue(&ledger_of(call->process)->ledger, slot);

	/* Only a sync of the whole device shows that such work is done. */
	if (slot == LEDGER_SHARED)
		__sync_fetch_and_add(&nr_dropped_ledger, 1);
	call->thread->queued = position ? slot + 1 : 0;
	return position;
}

/*
 * Queues the work of a call. Work inside of another call belongs to that call, which is in the
 * ledger already. False if it was captured into a graph.
 */
static inline bool work_queued(struct pt_regs *ctx, const struct traced_call *call)
{
	return call->thread->depth ||
	       work_queue(ctx, call, slot_of(ctx, call->row, call->p, call->process));
}

/* Whether work changes the process. Most launches find it as the launch before left it. */
static inline bool work_is_news(const struct traced_call *call)
{
	const struct process_state *process = call->process;

	return process->launcher_tid != (u32)call->p->pid || !phase_is_busy(process->task.phase) ||
	       !process->idle.since_ns || process->idle.gpu == IDLE_GPU_DONE;
}

/* The account of idle time: core/idle.h. The GPU gets its first work since it was done. */
static inline void device_gets_work(struct process_state *process, u64 now)
{
	u64 done_ns = ledger_of(process)->done_ns;
	bool was_done = process->idle.since_ns && process->idle.gpu == IDLE_GPU_DONE;

	process_write_begin(process);
	idle_ends(&process->idle, now);
	process_write_end(process);
	if (was_done && now > done_ns)
		process_sample(process, HIST_IDLE, now - done_ns);
}

/* This thread launched work or copied data to the GPU. */
static inline void device_fed(const struct traced_call *call)
{
	call->thread->has_fed = 1;
	launcher_found(call->p, call->thread, call->process, call->now);
	launcher_polled(call->p, call->thread, call->now);
	process_cross(call->p, call->process, BOUNDARY_LAUNCH, call->now);
	/* Copies inside a blocking collective are complete when the collective returns. */
	if (!call->thread->depth || !call->process->idle.in_collective)
		device_gets_work(call->process, call->now);
}

/* The call failed: there is no such work. */
static inline void work_failed(const struct traced_call *call)
{
	struct ledger *ledger = &ledger_of(call->process)->ledger;
	u32 slot = call->thread->queued - 1;

	if (!call->thread->queued)
		return;
	call->thread->queued = 0;
	step_result_failed(&call->process->step, slot, ledger_at(ledger, slot)->nr_queued);
	ledger_unqueue(ledger, slot);
	gpu_settle(call->process, call->now);
}

/* A call that gave work to the GPU has returned. It was entered at `begun`. */
static inline void feed_ends(struct pt_regs *ctx, struct traced_call *call, u64 begun)
{
	if (call_failed(ctx)) {
		if (!call->thread->depth)
			work_failed(call);
		return;
	}
	if (!work_is_news(call) || (!call->thread->depth && !call->thread->queued))
		return;
	call->now = begun;
	device_fed(call);
}
