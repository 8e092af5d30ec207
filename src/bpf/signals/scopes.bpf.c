// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scopes that a framework names: see core/scope.h. The begin and the end of a
 * scope around a loader step are certain. From the first such scope on, the
 * sleeps of the process are no longer evidence for waits for data: a Python
 * program also sleeps for its interpreter lock and for its compute threads.
 *
 * The end of the outermost optimizer scope of a thread is the end of a step.
 *
 * The call that ends a scope gets a member of the object that the entry returned,
 * and frameworks use the same call to end many other things.
 */
#include "bpf/signals/calls.bpf.h"
#include "core/scope.h"

static u32 scope_named(u64 string)
{
	char name[SCOPE_NAME_BYTES] = {};
	u64 text = 0;

	if (bpf_probe_read_user(&text, sizeof(text), (void *)string) ||
	    bpf_probe_read_user_str(name, sizeof(name), (void *)text) < 0)
		return SCOPE_NR;
	return scope_of(name);
}

static void loader_begins(const struct traced_call *call, u64 object, u64 entered_ns)
{
	if (call->thread->scope)
		return;
	call->thread->scope = object;
	launcher_found(call->p, call->thread, call->process, entered_ns);
	call->process->tells_waits = 1;
	data_wait_begins(call->p, call->process, entered_ns);
	idle_doing(&call->process->idle, IDLE_LOADER_CPU, call->now);
}

static void optimizer_begins(const struct traced_call *call, u64 object)
{
	if (!scope_is_outermost(call->thread->optimizer, object))
		return;
	call->thread->optimizer = object;
	process_write_begin(call->process);
	step_named(&call->process->step);
	process_write_end(call->process);
}

CALL_PROGRAM("uretprobe.multi", scope_return)
{
	struct traced_call call;
	struct call_frame *frame = call_returned(ctx, &call);
	u64 object = 0;
	u32 scope;

	if (!frame)
		return;
	scope = scope_named(frame->arg[1]);
	if (scope == SCOPE_NR ||
	    bpf_probe_read_user(&object, sizeof(object), (void *)frame->arg[0]))
		return;
	if (scope == SCOPE_LOADER)
		loader_begins(&call, object, frame->entered_ns);
	else if (scope == SCOPE_STEP)
		optimizer_begins(&call, object);
	else
		step_cleared(&call.process->step);
}

static void loader_ends(struct task_struct *p, struct process_state *process)
{
	u64 now = bpf_ktime_get_ns();

	if (process->launcher_tid != (u32)p->pid)
		return;
	process->woken_with_data = 1;
	idle_doing(&process->idle, IDLE_CPU, now);
	data_wait_ends(p, process, now);
}

static void optimizer_ends(struct task_struct *p, struct process_state *process)
{
	struct step_end end;

	process_write_begin(process);
	end = step_optimized(&process->step, bpf_ktime_get_ns());
	process_write_end(process);
	step_ended(p, process, &end);
}

CALL_PROGRAM("uprobe.multi", scope_leave)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread_state *thread = thread_find(p);
	struct process_state *process = thread ? process_find(p) : NULL;
	u64 member = PT_REGS_PARM1(ctx);

	if (!process)
		return;
	if (scope_holds(thread->scope, member)) {
		thread->scope = 0;
		loader_ends(p, process);
	} else if (scope_holds(thread->optimizer, member)) {
		thread->optimizer = 0;
		optimizer_ends(p, process);
	}
}
