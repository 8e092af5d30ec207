/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Weights and virtual time. The weight of a task is its nice weight times the
 * weights of the cgroups above it. A cgroup weight is relative to the default of
 * 100: a task in a cgroup of weight 200 counts as two tasks. The cgroup itself has
 * no share: ten tasks in it count as twenty.
 */
#include "bpf/sched/state.bpf.h"

#define CGROUP_WEIGHT_DEFAULT 100
/* The product of the weights is limited to the range of one cgroup weight. */
#define CGROUP_WEIGHT_MIN     1
#define CGROUP_WEIGHT_MAX     10000
#define CGROUP_DEPTH_MAX      16

/*
 * Weights of cgroups that do not have the default weight, by cgroup id. A cgroup
 * that does not fit has the default weight.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u32);
} cgroup_weights SEC(".maps");

/*
 * A task is up to date if its weights_seen equals this number. 0 means that its
 * weight was never computed.
 */
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
 * Converts CPU time to virtual time: the heavier the task, the smaller the
 * charge. A kernel thread has at least the default weight, whatever its nice
 * value. Otherwise a kernel thread with a high nice value could be preempted for
 * long while an RCU grace period waits for it, and the whole machine would wait.
 */
static u64 vtime_charge(const struct task_struct *p, const struct sched_task *task, u64 ran_ns)
{
	u32 weight = p->scx.weight * task->cgroup_weight / CGROUP_WEIGHT_DEFAULT;
	u32 least = p->flags & PF_KTHREAD ? 100 : 1;

	return ran_ns * 100 / (weight > least ? weight : least);
}

/*
 * The virtual time of a task by the clock of `llc`. A migration to another LLC
 * keeps the distance to the clock. Sleep earns a credit of one slice at most.
 * Running alone, while no other task wants the CPU, costs a debt of two slices at
 * most. A lower limit would forgive the time that every task runs beyond its
 * slice until the next tick.
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
 * Advances the clock by one slice at most. A task that is far ahead and ran from
 * the overdue queue must not move the clock by more. Otherwise all tasks that
 * wake up later would queue behind the tasks that already wait.
 */
static void advance_clock(struct llc *llc, u64 vtime)
{
	if (before(llc->clock + slice_ns, vtime))
		llc->clock += slice_ns;
	else if (before(llc->clock, vtime))
		llc->clock = vtime;
}

/* Charges the CPU time since the last charge to the task and to its CPU. */
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
	/* A task that keeps its CPU may have a new tier. */
	cpu->tier = tier_of_task(task);
}
