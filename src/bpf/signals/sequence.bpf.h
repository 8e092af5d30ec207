/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger of collectives of each communicator (core/sequence.h), from its first collective on.
 * Only communicators that were seen when they were created have one: a rank whose first collectives
 * were missed would count differently than the others. Without room for a ledger, the communicator
 * is marked, so that it is not compared, and is counted as dropped. MPI passes no identity that all
 * ranks share, so its collectives are not numbered.
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

static const struct sequence no_sequence;

static inline struct sequence_key sequence_key_of(const struct process_state *process, u32 place)
{
	return (struct sequence_key){
		.start_ns = process->start_ns,
		.tgid = process->task.pid,
		.comm = place,
	};
}

static inline struct sequence *sequence_known(const struct process_state *process, u32 place)
{
	struct sequence_key key = sequence_key_of(process, place);

	return bpf_map_lookup_elem(&sequences, &key);
}

/* Fails if the table is full, or the part of it that a tenant of the process may use. */
static inline struct sequence *sequence_new(struct process_state *process, u32 place)
{
	struct sequence_key key = sequence_key_of(process, place);

	if (!tenant_has_sequences(process->uid, process->group))
		return NULL;
	/* Another thread may have added it. */
	if (!bpf_map_update_elem(&sequences, &key, &no_sequence, BPF_NOEXIST)) {
		__sync_fetch_and_or(&process->sequences, 1ULL << (place & (COMMS_MAX - 1)));
		tenant_add_sequences(process->uid, process->group, 1);
	}
	return bpf_map_lookup_elem(&sequences, &key);
}

/* Without a size and an identity, a communicator cannot be compared. */
static inline struct sequence *sequence_of(struct process_state *process, struct comm *comm,
					   u32 place)
{
	struct sequence *sequence;

	if (comm->is_uncounted || (!comm->nr_ranks && !comm->identity))
		return NULL;
	sequence = sequence_known(process, place) ?: sequence_new(process, place);
	if (!sequence) {
		comm->is_uncounted = true;
		__sync_fetch_and_add(&nr_dropped_comms, 1);
	} else if (sequence->made_ns != comm->since_ns) {
		sequence->nr = 0;
		sequence->made_ns = comm->since_ns;
	}
	return sequence;
}

/* Gives a collective that is entered its number. */
static inline void collective_numbered(struct pt_regs *ctx, const struct traced_call *call)
{
	struct walk walk = { .found = compat_unknown(COMMS_MAX) };
	u32 depth = call->thread->depth, operation = operation_of(call->row);
	struct sequence *sequence;
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
	sequence = comm ? sequence_of(call->process, comm, (u32)walk.found) : NULL;
	if (!sequence)
		return;
	frame = frame_at(call->thread, depth - 1);
	frame->comm = (u32)walk.found + 1;
	sequence_enter(sequence, operation, collective_bytes(frame->arg[0], frame->arg[1]),
		       call->now);
}

static inline void collective_returned(const struct traced_call *call,
				       const struct call_frame *frame, bool accepted)
{
	struct sequence *sequence =
		frame->comm ? sequence_known(call->process, frame->comm - 1) : NULL;

	if (sequence)
		sequence_return(sequence, frame->entered_ns, accepted, call->now);
}
