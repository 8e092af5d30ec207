// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures the longest time that a task was runnable but did not run, over all tasks
 * of the machine. Runs in a guest only.
 */
#include "bpf/compat.bpf.h"
#include "sched/waits.h"

char LICENSE[] SEC("license") = "GPL";

struct longest_wait longest;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} runnable_since SEC(".maps");

static void now_runnable(struct task_struct *p)
{
	u64 *since = bpf_task_storage_get(&runnable_since, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (since)
		*since = bpf_ktime_get_ns();
}

static void now_running(struct task_struct *p)
{
	u64 *since = bpf_task_storage_get(&runnable_since, p, NULL, 0), waited;

	if (!since || !*since)
		return;
	waited = bpf_ktime_get_ns() - *since;
	*since = 0;
	/* A race of two CPUs may lose a maximum or mix up the names of two tasks. */
	if (waited <= longest.ns)
		return;
	longest.ns = waited;
	longest.pid = p->pid;
	bpf_probe_read_kernel_str(longest.comm, sizeof(longest.comm), p->comm);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	now_runnable(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	now_runnable(p);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (prev->pid && (preempt || !prev_state))
		now_runnable(prev);
	now_running(next);
	return 0;
}
