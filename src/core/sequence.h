/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger of the collectives of one communicator. Each collective that the rank enters gets the
 * next number. All ranks of a communicator must enter the same operation with the same bytes at the
 * same number, so numbers can be compared between ranks. Sends and receives get no number, because
 * ranks differ in them by design.
 *
 * BPF programs write the ledger while user space copies it from the first to the last byte. The
 * writer sets the number of a call first and that of the ledger last, so a call whose number is not
 * the expected one was overwritten during the copy. Compiled for BPF and user space.
 */
#include <stdbool.h>
#include "abi/runtime.h"

/* The latest calls that are kept. */
#define SEQUENCE_KEPT 8

struct collective_call {
	u64 entered_ns;
	u64 returned_ns; /* 0: the call has not returned; the GPU may finish its work later */
	u64 bytes;
	u32 operation;
	u32 number; /* the low bits */
};

/* A communicator of a process: its place among them. */
struct sequence_key {
	u64 start_ns; /* as in struct process_key */
	u32 tgid;
	u32 comm;
};
_Static_assert(sizeof(struct sequence_key) == 16, "shared with BPF");

struct sequence {
	u64 made_ns; /* when its communicator was requested: another one can follow at its place */
	u64 nr;	     /* collectives that were entered: the number of the latest one */
	struct collective_call calls[SEQUENCE_KEPT]; /* by number */
};
_Static_assert(sizeof(struct sequence) == 16 + SEQUENCE_KEPT * 32, "shared with BPF");

static inline bool sequence_has(u32 operation)
{
	return operation != DETAIL_SEND - COLLECTIVE_FIRST &&
	       operation != DETAIL_RECV - COLLECTIVE_FIRST;
}

static inline struct collective_call *sequence_at(struct sequence *sequence, u64 number)
{
	return &sequence->calls[number & (SEQUENCE_KEPT - 1)];
}

static inline void sequence_enter(struct sequence *sequence, u32 operation, u64 bytes, u64 now)
{
	u64 number = sequence->nr + 1;
	struct collective_call *call = sequence_at(sequence, number);

	*(volatile u32 *)&call->number = (u32)number;
	call->entered_ns = now;
	call->returned_ns = 0;
	call->bytes = bytes;
	call->operation = operation;
	*(volatile u64 *)&sequence->nr = number;
}

/* The call that was entered at that time returns. A call that was rejected takes no number. */
static inline void sequence_return(struct sequence *sequence, u64 entered_ns, bool accepted,
				   u64 now)
{
	struct collective_call *call = sequence_at(sequence, sequence->nr);

	if (call->number != (u32)sequence->nr || call->entered_ns != entered_ns)
		return;
	if (accepted)
		call->returned_ns = now;
	else
		*(volatile u64 *)&sequence->nr = sequence->nr - 1;
}

/* User space only: the call with this number; NULL if it is not kept. */
const struct collective_call *sequence_find(const struct sequence *sequence, u64 number);
