// SPDX-License-Identifier: GPL-2.0-only
/* Communicators of the collective runtimes: which rank a process has, among how many. */
#include "bpf/calls.bpf.h"

SEC("uprobe.multi")
int comm_enter(struct pt_regs *ctx)
{
	struct traced_call call;

	call_entered(ctx, &call);
	return 0;
}

SEC("uretprobe.multi")
int comm_return(struct pt_regs *ctx)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);

	if (!frame || (int)PT_REGS_RC(ctx) != 0)
		return 0;
	call.process->nr_ranks = frame->arg[1];
	call.process->rank = frame->arg[2];
	return 0;
}
