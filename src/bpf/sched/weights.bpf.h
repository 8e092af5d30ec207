/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Weights and virtual time. A task's weight is what its niceness says, times what
 * the weights of the cgroups above it say, each against the usual 100: a task in a
 * group of weight 200 counts as two. The group as such has no share: ten tasks in it
 * count as twenty.
 */
#include "bpf/sched/state.bpf.h"

#define CGROUP_WEIGHT_DEFAULT 100
/* A product of weights is kept within what a single weight can be. */
#define CGROUP_WEIGHT_MIN     1
#define CGROUP_WEIGHT_MAX     10000
#define CGROUP_DEPTH_MAX      16

/* Of cgroups, by their id, that are not as heavy as any; the first so many at least. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u32);
} cgroup_weights SEC(".maps");

/* Who has looked since then knows its weight; 0 is who never looked. */
static u32 nr_weight_changes = 1;

static void cgroup_weighs(struct cgroup *cgroup, u32 weight)
{
	u64 id = BPF_CORE_READ(cgroup, kn, id);

	if (weight != CGROUP_WEIGHT_DEFAULT)
		bpf_map_update_elem(&cgroup_weights, &id, &weight, BPF_ANY);
	else if (bpf_map_delete_elem(&cgroup_weights, &id) < 0)
		return;
	__sync_fetch_and_add(&nr_weight_changes, 1);
}

static u32 cgroup_weight_at(struct cgroup *cgroup, int level)
{
	struct cgroup *ancestor = bpf_cgroup_ancestor(cgroup, level);
	u32 *weight;
	u64 id;

	if (!ancestor)
		return CGROUP_WEIGHT_DEFAULT;
	id = BPF_CORE_READ(ancestor, kn, id);
	bpf_cgroup_release(ancestor);
	weight = bpf_map_lookup_elem(&cgroup_weights, &id);
	return weight ? *weight : CGROUP_WEIGHT_DEFAULT;
}

static u32 weight_above(struct task_struct *p)
{
	struct cgroup *cgroup = scx_bpf_task_cgroup(p);
	u64 product = CGROUP_WEIGHT_DEFAULT;
	int depth, level;

	if (!cgroup)
		return product;
	depth = cgroup->level;
	bpf_for(level, 1, depth < CGROUP_DEPTH_MAX ? depth + 1 : CGROUP_DEPTH_MAX) {
		product = product * cgroup_weight_at(cgroup, level) / CGROUP_WEIGHT_DEFAULT;
		if (product < CGROUP_WEIGHT_MIN)
			product = CGROUP_WEIGHT_MIN;
		else if (product > CGROUP_WEIGHT_MAX)
			product = CGROUP_WEIGHT_MAX;
	}
	bpf_cgroup_release(cgroup);
	return product;
}

__noinline int find_weight(struct task_struct *p __arg_trusted)
{
	struct sched_task *task = sched_task_of(p);

	if (!task)
		return 0;
	task->weights_seen = nr_weight_changes;
	task->cgroup_weight =
		bpf_ksym_exists(scx_bpf_task_cgroup) ? weight_above(p) : CGROUP_WEIGHT_DEFAULT;
	return 0;
}

/*
 * What running for so long costs a task: the heavier it is, the less. A kernel
 * thread counts as ordinary at least, however nice it is: preempted while all of
 * RCU waits for it, as the nicest of them are, it would hold up the machine.
 */
static u64 vtime_charge(const struct task_struct *p, const struct sched_task *task, u64 ran_ns)
{
	u32 weight = p->scx.weight * task->cgroup_weight / CGROUP_WEIGHT_DEFAULT;
	u32 least = p->flags & PF_KTHREAD ? 100 : 1;

	return ran_ns * 100 / (weight > least ? weight : least);
}

/*
 * The task's virtual time by the clock of `llc`. Moving to another cache keeps
 * the distance to the clock. Sleeping earns a credit of one slice at most, and
 * running alone, while nobody wanted the CPU, a debt of two slices at most: less
 * would forgive what everybody runs beyond a slice, until the next tick.
 */
static u64 vtime_at(struct task_struct *p, struct sched_task *task, u32 llc)
{
	u64 clock = llc_at(llc)->clock, vtime = p->scx.dsq_vtime + task->tier_credit_ns;
	u64 debt_limit = clock + vtime_charge(p, task, 2 * slice_ns);

	if (task->llc != llc) {
		vtime += clock - llc_at(task->llc)->clock;
		task->llc = llc;
	}
	if (before(vtime, clock - slice_ns))
		vtime = clock - slice_ns;
	else if (before(debt_limit, vtime))
		vtime = debt_limit;
	return vtime;
}

/*
 * By one slice at most: a task far ahead that got an overdue turn must not take the
 * clock along, or all who wake up from then on queue up behind those who already
 * wait.
 */
static void advance_clock(struct llc *llc, u64 vtime)
{
	if (before(llc->clock + slice_ns, vtime))
		llc->clock += slice_ns;
	else if (before(llc->clock, vtime))
		llc->clock = vtime;
}

/* Puts what a task has run since it was last asked on its own account and its CPU's. */
static void charge(struct task_struct *p, struct sched_task *task, struct sched_cpu *here,
		   bool sleeps, u64 now)
{
	struct cpu_state *cpu = cpu_at(scx_bpf_task_cpu(p));
	u64 ran_ns = now - task->running_since_ns;
	u32 class = task->class;

	task->running_since_ns = now;
	cpu->debt_ns =
		debt_after(cpu->debt_ns, is_promoted(class), ran_ns, policy.reserved_percent);
	barrier_var(class);
	here->stats.counters.ran_ns[class & (CLASS_SLOTS - 1)] += ran_ns;
	compat_set_dsq_vtime(p, p->scx.dsq_vtime + vtime_charge(p, task, ran_ns));
	task->tier = learn_task_stops(p, &task->learner, ran_ns, sleeps, now);
	/* Who goes on may have become something else. */
	cpu->tier = tier_of_task(task);
}
