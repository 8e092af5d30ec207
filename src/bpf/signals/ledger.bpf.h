/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger of a process (core/ledger.h) in the kernel: which work is queued on which stream,
 * which of it is known to be done, and what follows from that for the account of idle time.
 *
 * Handles are numbers that the process passes. A process that passes wrong ones spoils its own
 * ledger and no other.
 */
#include "bpf/signals/calls.bpf.h"
#include "bpf/signals/gpu.bpf.h"

/* The events of all processes. An event that was evicted completes nothing. */
#define LEDGER_EVENTS 16384

struct ledger_event_key {
	u64 start_ns;
	u64 event;
	u32 tgid;
	u32 pad;
};

struct ledger_event_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LEDGER_EVENTS);
	__type(key, struct ledger_event_key);
	__type(value, struct ledger_mark);
};

extern struct ledger_event_map ledger_events SEC(".maps");

/* The value of an argument that is not in a register. */
static inline u64 argument_on_stack(struct pt_regs *ctx, u32 position)
{
	u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value),
			    (void *)(STACK_ARGUMENTS(ctx) + 8 * (position - REGISTER_ARGUMENTS)));
	return value;
}

/* The stream that a call uses. */
static inline u64 stream_of(struct pt_regs *ctx, const struct call_row *row,
			    const struct task_struct *p)
{
	struct arguments args = ARGUMENTS(ctx);
	u32 position = (u8)row->arg[2];
	u64 handle = 0;

	barrier_var(position);
	if (position < REGISTER_ARGUMENTS)
		handle = args.value[position];
	else if (position <= ARG_LAST)
		handle = argument_on_stack(ctx, position);
	else if (position == (u8)ARG_CONFIG)
		bpf_probe_read_user(&handle, sizeof(handle),
				    (void *)(args.value[0] + ARG_CONFIG_STREAM_AT));
	return ledger_handle(handle, row->per_thread, p->pid);
}

static inline u32 slot_of(struct pt_regs *ctx, const struct call_row *row,
			  const struct task_struct *p, struct process_state *process)
{
	return ledger_slot(&ledger_of(process)->ledger, stream_of(ctx, row, p));
}

static inline struct ledger_event_key event_key(const struct process_state *process, u64 event)
{
	return (struct ledger_event_key){
		.start_ns = process->start_ns,
		.event = event,
		.tgid = process->task.pid,
	};
}

/* A thread begins to wait for work that is not done. */
static inline void gpu_wait_begins(const struct traced_call *call)
{
	call->thread->is_waiting = 1;
	call->thread->doing = GPU_WAIT_RUNS;
	call->thread->doing_since_ns = call->now;
	gpu_waiter_counts(call->thread, call->process, true, call->now);
}

static inline void gpu_wait_ends(const struct traced_call *call)
{
	gpu_waiter_counts(call->thread, call->process, false, call->now);
	gpu_waiter_does(call->thread, GPU_WAIT_RUNS, call->now);
	call->thread->is_waiting = 0;
}

/* What is done when a call on a stream returns. */
static inline void target_stream(struct pt_regs *ctx, const struct traced_call *call,
				 struct ledger_target *target)
{
	target->kind = DETAIL_STREAM;
	target->mark = ledger_mark(&ledger_of(call->process)->ledger,
				   slot_of(ctx, call->row, call->p, call->process));
}

static inline void target_event(u64 event, const struct traced_call *call,
				struct ledger_target *target)
{
	struct ledger_event_key key = event_key(call->process, event);
	const struct ledger_mark *mark = bpf_map_lookup_elem(&ledger_events, &key);

	if (mark) {
		target->kind = DETAIL_EVENT;
		target->mark = *mark;
		return;
	}
	/* The event was never recorded, or it was evicted. */
	target->kind = DETAIL_UNKNOWN;
	__sync_fetch_and_add(&nr_dropped_ledger, 1);
}

/* What a sync, a query or a blocking copy shows when it succeeds. */
static inline void target_find(struct pt_regs *ctx, const struct traced_call *call,
			       struct ledger_target *target)
{
	struct arguments args = ARGUMENTS(ctx);

	switch (call->row->detail) {
	case DETAIL_DEVICE:
		target->kind = DETAIL_DEVICE;
		ledger_positions(&ledger_of(call->process)->ledger, &target->positions);
		break;
	case DETAIL_STREAM: target_stream(ctx, call, target); break;
	case DETAIL_EVENT: target_event(argument(&args, call->row->arg[0]), call, target); break;
	default: target->kind = DETAIL_UNKNOWN; break;
	}
}

static inline bool target_is_done(struct process_state *process, const struct ledger_target *target)
{
	struct ledger *ledger = &ledger_of(process)->ledger;

	if (target->kind == DETAIL_STREAM || target->kind == DETAIL_EVENT)
		return ledger_mark_is_done(ledger, &target->mark);
	return ledger_is_done(ledger);
}

static inline void target_complete(struct process_state *process,
				   const struct ledger_target *target)
{
	struct ledger *ledger = &ledger_of(process)->ledger;

	if (target->kind == DETAIL_DEVICE)
		ledger_complete_all(ledger, &target->positions);
	else if (target->kind != DETAIL_UNKNOWN)
		ledger_complete(ledger, &target->mark);
}
