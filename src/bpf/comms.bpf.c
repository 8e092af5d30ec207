// SPDX-License-Identifier: GPL-2.0-only
/* Communicators of the collective runtimes: which rank a process has, among how many. */
#include "bpf/calls.bpf.h"

CALL_PROGRAM("uprobe.multi", comm_enter)
{
	struct traced_call call;

	call_entered(ctx, &call);
}

CALL_PROGRAM("uretprobe.multi", comm_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);

	if (!frame || (int)PT_REGS_RC(ctx) != 0)
		return;
	call.process->nr_ranks = frame->arg[1];
	call.process->rank = frame->arg[2];
}
