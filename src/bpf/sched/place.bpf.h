/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The rule `place`: a task runs near the GPU that it works for. A task that wakes
 * up on a CPU of the GPU's NUMA node is left to the kernel's idle CPU selection,
 * which stays close to the previous CPU. A task that wakes up on another node
 * moves to an idle CPU of the GPU's node. If that node has no idle CPU, any idle
 * CPU is better than waiting.
 *
 * NUMA nodes are numbered from 1 here; 0 means unknown.
 */
#include "bpf/sched/state.bpf.h"

/* Set by user space. The index is the GPU number of the machine. */
u8 gpu_node[GPU_MAX];

static u32 node_of_process(const struct process_state *process)
{
	u32 gpu = process_gpu(process);

	return gpu < GPU_MAX ? gpu_node[gpu] : 0;
}

/* A loader that is a separate process works for the GPU of its parent process. */
static u32 node_of_task(struct task_struct *p)
{
	struct thread_state *thread = thread_find(p);
	struct task_struct *parent = p->real_parent;
	struct process_state *process;

	if (!thread || thread->role == ROLE_OTHER)
		return 0;
	process = process_find(p);
	if ((!process || !process->task.has_gpu) && thread->role == ROLE_LOADER && parent)
		process = process_find(parent);
	return process ? node_of_process(process) : 0;
}

static u32 node_of_cpu(u32 cpu)
{
	barrier_var(cpu);
	return topology.cpu_node[cpu & (MAX_CPUS - 1)];
}

/*
 * Returns an idle CPU on the node of the task's GPU and clears its idle state.
 * Negative: use the default selection.
 */
static s32 pick_idle_near(struct task_struct *p, s32 prev_cpu)
{
	u32 nr_cpus = topology.nr_cpus, node, cpu;

	if (topology.nr_nodes <= 1 || !ml_seen || !rule_on(policy.rules_off, RULE_PLACE))
		return -1;
	node = node_of_task(p);
	if (!node || node_of_cpu(prev_cpu) == node)
		return -1;
	bpf_for(cpu, 0, nr_cpus) {
		if (node_of_cpu(cpu) == node && may_run_on(p, cpu) &&
		    scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return -1;
}
