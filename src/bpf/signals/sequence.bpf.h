/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger of collectives of each communicator (core/sequence.h), in the storage of the
 * communicators of a process. Only communicators that were seen when they were created have one:
 * a rank whose first collectives were missed would count differently than the others. MPI passes no
 * identity that all ranks share, so its collectives are not numbered.
 */
#include "bpf/signals/comms.bpf.h"
#include "bpf/signals/ledger.bpf.h"

static inline u32 operation_of(const struct call_row *row)
{
	u32 operation = row->detail - COLLECTIVE_FIRST;

	barrier_var(operation);
	return operation & (COLLECTIVE_NR - 1);
}

/* The communicator is the argument before the stream. */
static inline u64 comm_handle(struct pt_regs *ctx, const struct call_row *row)
{
	struct arguments args = ARGUMENTS(ctx);
	u32 position = (u8)row->arg[2] - 1;

	barrier_var(position);
	if (position < REGISTER_ARGUMENTS)
		return args.value[position];
	return position <= ARG_LAST ? argument_on_stack(ctx, position) : 0;
}

/* Gives a collective that is entered its number. */
static inline void collective_numbered(struct pt_regs *ctx, const struct traced_call *call)
{
	struct walk walk = { .found = compat_unknown(COMMS_MAX) };
	u32 depth = call->thread->depth, operation = operation_of(call->row);
	struct call_frame *frame;
	struct comm *comm;

	if (call->row->runtime == RUNTIME_MPI || !sequence_has(operation) || !depth ||
	    depth > MAX_CALL_DEPTH)
		return;
	walk.comms = comms_find(call->p);
	walk.wanted = comm_handle(ctx, call->row);
	if (!walk.comms || !walk.wanted)
		return;
	bpf_loop(COMMS_MAX, find_step, &walk, 0);
	comm = comm_at(walk.comms, walk.found);
	if (!comm)
		return;
	frame = frame_at(call->thread, depth - 1);
	frame->comm = (u32)walk.found + 1;
	sequence_enter(&comm->sequence, operation, collective_bytes(frame->arg[0], frame->arg[1]),
		       call->now);
}

static inline void collective_returned(const struct traced_call *call,
				       const struct call_frame *frame, bool accepted)
{
	struct comms *comms = frame->comm ? comms_find(call->p) : NULL;
	struct comm *comm = comms ? comm_at(comms, frame->comm - 1) : NULL;

	if (comm)
		sequence_return(&comm->sequence, frame->entered_ns, accepted, call->now);
}
