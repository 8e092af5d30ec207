// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Observes the learning. For every process whose name begins with the watched name, it records
 * the tier at the exec and the CPU time in each tier. Its programs run after the BPF programs of
 * zerneld, because they are attached later.
 */
#include "bpf/sched/task.bpf.h"
#include "learning/watch.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATCH_PROCESSES);
	__type(key, u32);
	__type(value, struct watched);
} processes_watched SEC(".maps");

const volatile char watched_name[COMM_LEN];

static bool is_watched(const struct task_struct *p)
{
	for (u32 i = 0; i < COMM_LEN && watched_name[i]; i++)
		if (p->comm[i] != watched_name[i])
			return false;
	return true;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(watch_exec, struct task_struct *p)
{
	struct sched_task *task = sched_task_of(p);
	u64 now = bpf_ktime_get_ns();
	struct watched watched = { .exec_ns = now, .since_ns = now };
	u32 pid = p->pid;

	if (!task || !is_watched(p))
		return 0;
	watched.first_tier = watched.tier = task->learner.tier;
	watched.predicted = task->learner.predicted;
	bpf_map_update_elem(&processes_watched, &pid, &watched, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(watch_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 from = prev->pid, to = next->pid, tier;
	struct watched *watched = bpf_map_lookup_elem(&processes_watched, &from);
	u64 now = bpf_ktime_get_ns();
	struct sched_task *task;

	if (watched && watched->since_ns) {
		tier = watched->tier;
		barrier_var(tier);
		watched->ran_ns[tier & (WATCH_TIERS - 1)] += now - watched->since_ns;
		watched->since_ns = 0;
		watched->nr_slices++;
	}
	watched = bpf_map_lookup_elem(&processes_watched, &to);
	task = watched ? sched_task_of(next) : NULL;
	if (task) {
		watched->since_ns = now;
		watched->tier = task->learner.tier;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
