/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The rule `place`: a task runs near the GPU that it works for. A task that wakes
 * up on a CPU of the GPU's NUMA node is left to the kernel's idle CPU selection,
 * which stays close to the previous CPU. For a task that wakes up on another node,
 * that selection begins at a CPU of the GPU's node. If that node has no idle CPU, any
 * idle CPU is better than waiting.
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

/*
 * The CPU from which the kernel looks for an idle one: the previous CPU, or, if the GPU of the task
 * is on another node, a random CPU of that node.
 */
static s32 cpu_near_gpu(struct task_struct *p, s32 prev_cpu)
{
	u32 node, size, place, cpu;

	if (topology.nr_nodes <= 1 || !ml_seen || !rule_on(policy.rules_off, RULE_PLACE))
		return prev_cpu;
	node = node_of_task(p);
	if (!node || node_of_cpu(prev_cpu) == node)
		return prev_cpu;
	barrier_var(node);
	size = topology.node_size[node & (MAX_NODES - 1)];
	if (!size)
		return prev_cpu;
	place = topology.node_place[node & (MAX_NODES - 1)] + bpf_get_prandom_u32() % size;
	barrier_var(place);
	cpu = topology.node_cpus[place & (MAX_CPUS - 1)];
	return may_run_on(p, cpu) ? (s32)cpu : prev_cpu;
}
