// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the threads of ML processes do between their calls: who sleeps, who
 * wakes whom, who was made by whom.
 *
 * A launcher that goes to sleep outside of any call waits for data, and whoever
 * of its own family ends that sleep is its loader: a thread of the same process
 * or a process it forked. Threads that are born inside a collective runtime's
 * set-up are its helpers.
 *
 * Everything here runs for every switch and wake-up of the machine, so the first
 * thing each program does is to leave when the task has no state.
 */
#include "bpf/state.bpf.h"

/* One bit among others: a futex wait is freezable too. */
#define TASK_INTERRUPTIBLE 1

static bool is_launcher(const struct thread_state *thread)
{
	return thread && thread->role == ROLE_LAUNCHER;
}

static void launcher_sleeps(struct task_struct *p, struct thread_state *thread, u64 now)
{
	struct process_state *process = process_find(thread);

	if (!process || thread->depth || process->launcher_tid != (u32)p->pid)
		return;
	process->waits_for_data = 1;
	process_cross(p, process, BOUNDARY_DATA_WAIT, now);
}

static void launcher_runs(struct task_struct *p, struct thread_state *thread, u64 now)
{
	struct process_state *process = process_find(thread);

	if (!process || !process->waits_for_data || process->launcher_tid != (u32)p->pid)
		return;
	process->waits_for_data = 0;
	process_cross(p, process, BOUNDARY_DATA_READY, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct thread_state *thread = thread_find(prev);

	if (is_launcher(thread) && (prev_state & TASK_INTERRUPTIBLE))
		launcher_sleeps(prev, thread, bpf_ktime_get_ns());
	thread = thread_find(next);
	if (is_launcher(thread))
		launcher_runs(next, thread, bpf_ktime_get_ns());
	return 0;
}

/* `waker` belongs to the family of process `of`: one of its threads, or a fork of it. */
static bool is_family(struct task_struct *waker, u32 of)
{
	return (u32)waker->tgid == of || (u32)BPF_CORE_READ(waker, real_parent, tgid) == of;
}

static void loader_found(struct task_struct *p, u32 consumer_tgid, u64 now)
{
	struct thread_state *thread = thread_get(p);
	struct process_state *process;

	if (!thread || thread->role != ROLE_OTHER)
		return;
	thread_set_role(p, thread, ROLE_LOADER, now);
	/* Loaders that are threads share the process, and so the phase, of the launcher. */
	if ((u32)p->tgid == consumer_tgid)
		return;
	process = process_get(p, thread);
	if (!process)
		return;
	process->consumer_tgid = consumer_tgid;
	task_transition(&process->task, PHASE_DATA_LOADING, now);
	event_send(EVENT_PHASE, p, PHASE_DATA_LOADING, now);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(thread_waking, struct task_struct *p)
{
	struct thread_state *thread = thread_find(p);
	struct task_struct *waker = bpf_get_current_task_btf();
	struct process_state *process;

	if (!is_launcher(thread) || waker == p)
		return 0;
	process = process_find(thread);
	if (process && process->waits_for_data && is_family(waker, p->tgid))
		loader_found(waker, p->tgid, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(thread_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread_state *thread = thread_find(parent), *made;
	u32 top;

	if (!thread || !thread->depth || parent->tgid != child->tgid)
		return 0;
	top = thread->frames[(thread->depth - 1) & (MAX_CALL_DEPTH - 1)].call;
	if (top >= CALL_NR || call_rows[top].kind != CALL_KIND_COMM_INIT)
		return 0;
	made = thread_get(child);
	if (made)
		thread_set_role(child, made, ROLE_COLLECTIVE_HELPER, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exit, struct task_struct *p)
{
	struct thread_state *thread = thread_find(p);

	if (!thread || p->signal->live.counter)
		return 0;
	if (process_find(thread)) {
		event_send(EVENT_EXIT, p, 0, bpf_ktime_get_ns());
		bpf_map_delete_elem(&processes, &thread->process);
	}
	return 0;
}
