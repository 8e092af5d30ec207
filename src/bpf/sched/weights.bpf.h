/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Virtual time. The virtual time of a task is its CPU time times its rate, which follows
 * from its nice value and from the shares of its cgroups (groups.bpf.h). Tasks wait in
 * the order of their virtual deadlines: the virtual time after one more slice.
 */
#include "bpf/sched/groups.bpf.h"

/*
 * Moves the virtual time of a task to the clock of `llc`. A migration to another LLC
 * keeps the distance to the clock. Sleep earns one slice at most. Running alone, while
 * no other task wants the CPU, costs two slices at most. A lower limit would forgive the
 * time that every task runs beyond its slice until the next tick.
 */
static void vtime_update(struct sched_task *task, u32 llc)
{
	u64 clock = llc_at(llc)->clock, slice = virtual_ns(task->rate, slice_ns);

	if (task->llc != llc) {
		task->vtime += clock - llc_at(task->llc)->clock;
		task->llc = llc;
	}
	if (before(task->vtime, clock - slice))
		task->vtime = clock - slice;
	else if (before(clock + 2 * slice, task->vtime))
		task->vtime = clock + 2 * slice;
}

/* The place of a task in the queues of its LLC: its virtual deadline. */
static u64 key_of(const struct sched_task *task)
{
	return task->vtime + virtual_ns(task->rate, slice_ns) +
	       group_excess(task->group, task->llc);
}

/*
 * Advances the clock to the virtual time of a task that runs in order, by one slice at
 * most: a credit lets a task run although its virtual time is later than the deadlines
 * of tasks that wait.
 */
static void advance_clock(struct llc *llc, u64 vtime)
{
	if (before(llc->clock + slice_ns, vtime))
		llc->clock += slice_ns;
	else if (before(llc->clock, vtime))
		llc->clock = vtime;
}

/*
 * If all tasks that run are behind the clock, for example because they sleep often, the
 * clock advances nearly as fast as the virtual time of a task that gets exactly its share.
 * Otherwise tasks with an earlier deadline could keep a waiting task waiting. Promoted tasks
 * do not run in order: if the clock followed them, the deadlines of all waiting tasks would
 * be behind it, and a task that wakes up would wait for all of them, whatever its weight.
 */
static void drive_clock(struct llc *llc, u64 ran_ns)
{
	u64 rate = rate_of_ratio(ratio_of_machine(machine_weight()));

	__sync_fetch_and_add(&llc->clock, virtual_ns(rate, ran_ns) * 15 / 16);
}

/* Charges the CPU time since the last charge to the task, its groups and its CPU. */
static void charge(struct task_struct *p, struct sched_task *task, struct sched_cpu *here,
		   bool sleeps, u64 now)
{
	struct cpu_state *cpu = cpu_at(scx_bpf_task_cpu(p));
	u64 ran_ns = now - task->running_since_ns;
	u32 class = task->class;

	task->running_since_ns = now;
	cpu->debt_ns =
		debt_after(cpu->debt_ns, is_promoted(class), ran_ns, policy.reserved_percent);
	cpu->system_debt_ns = system_debt_after(cpu->system_debt_ns, class == CLASS_SYSTEM, ran_ns);
	barrier_var(class);
	here->stats.counters.ran_ns[class & (CLASS_SLOTS - 1)] += ran_ns;
	groups_charge(task, ran_ns);
	promotion_charge(task, ran_ns, now);
	if (!is_promoted(class))
		drive_clock(llc_at(task->llc), ran_ns);
	task->vtime += virtual_ns(task->rate, ran_ns);
	task->tier = learn_task_stops(p, &task->learner, ran_ns, sleeps, now);
	/* A task that keeps its CPU may have a new tier. */
	cpu->tier = tier_of_task(task);
}
