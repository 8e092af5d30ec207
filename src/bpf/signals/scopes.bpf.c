// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scopes that a framework names: see core/scope.h. The begin and the end of a
 * scope around a loader step are certain. From the first such scope on, the
 * sleeps of the process are no longer evidence for waits for data: a Python
 * program also sleeps for its interpreter lock and for its compute threads.
 *
 * The call that ends a scope gets a member of the object that the entry returned,
 * and frameworks use the same call to end many other things.
 */
#include "bpf/signals/calls.bpf.h"
#include "core/scope.h"

static bool names_loader(u64 string)
{
	char name[SCOPE_NAME_BYTES] = {};
	struct cxx_string at = {};

	return !bpf_probe_read_user(&at, sizeof(at), (void *)string) && at.length >= sizeof(name) &&
	       !bpf_probe_read_user(name, sizeof(name), (void *)at.text) && scope_is_loader(name);
}

CALL_PROGRAM("uretprobe.multi", scope_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	u64 object = 0;

	if (!frame || call.thread->scope || !names_loader(frame->arg[1]) ||
	    bpf_probe_read_user(&object, sizeof(object), (void *)frame->arg[0]))
		return;
	call.thread->scope = object;
	thread_set_role(call.p, call.thread, ROLE_LAUNCHER, frame->entered_ns);
	call.process->launcher_tid = call.p->pid;
	call.process->consumer_tgid = 0;
	call.process->tells_waits = 1;
	data_wait_begins(call.p, call.process, frame->entered_ns);
	idle_doing(&call.process->idle, IDLE_LOADER_CPU, call.now);
}

CALL_PROGRAM("uprobe.multi", scope_leave)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread_state *thread = thread_find(p);
	struct process_state *process;
	u64 now;

	if (!thread || !scope_holds(thread->scope, PT_REGS_PARM1(ctx)))
		return;
	thread->scope = 0;
	process = process_find(p);
	if (!process || process->launcher_tid != (u32)p->pid)
		return;
	now = bpf_ktime_get_ns();
	process->woken_with_data = 1;
	idle_doing(&process->idle, IDLE_CPU, now);
	data_wait_ends(p, process, now);
}
