// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rank and size that MPI returns to a process through pointers: see core/mpi.h.
 */
#include "bpf/signals/calls.bpf.h"
#include "core/mpi.h"

CALL_PROGRAM("uretprobe.multi", comm_told_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	struct mpi_world world;
	s32 value;

	if (!frame || (int)PT_REGS_RC(ctx) != 0 ||
	    bpf_probe_read_user(&value, sizeof(value), (void *)frame->arg[1]))
		return;
	world = (struct mpi_world){
		.comm = call.process->comm_handle,
		.rank = call.process->rank,
		.nr_ranks = call.process->nr_ranks,
	};
	if (call.row->kind == CALL_KIND_COMM_RANK)
		mpi_rank_told(&world, frame->arg[0], value);
	else
		mpi_size_told(&world, frame->arg[0], value);
	process_write_begin(call.process);
	call.process->comm_handle = world.comm;
	call.process->rank = world.rank;
	call.process->nr_ranks = world.nr_ranks;
	process_write_end(call.process);
}
