/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Moves of waiting tasks, by timers and by hotplug, to where a CPU serves them. A task waits in the
 * cache of an idle CPU, which is kicked once the task is there and looks there first. If no allowed
 * CPU is idle, it waits in the cache of its own CPU.
 */
#include "bpf/sched/state.bpf.h"

static u32 llc_at_idle(struct task_struct *p, const struct cpumask *allowed, s32 idle_cpu)
{
	return idle_cpu >= 0 ? queue_of_cpu(idle_cpu) : llc_of_task(p, allowed);
}

static void kick_idle(s32 cpu)
{
	scx_bpf_kick_cpu(cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE));
}

/* Called after the move: a CPU may have gone idle since none was found. */
static void kick_for(const struct cpumask *allowed, s32 idle_cpu)
{
	if (idle_cpu < 0)
		idle_cpu = idle_cpu_in(allowed);
	if (idle_cpu >= 0)
		kick_idle(idle_cpu);
}

/*
 * Whether the local DSQ of a CPU is empty enough for an overdue task. The CPU runs that DSQ without
 * asking: with more than half of an interval of sweeps in it, the tasks of one user could take all
 * of the CPU. Everything goes to the local DSQ of a CPU that is offline.
 */
static bool has_local_room(s32 cpu)
{
	s32 nr = scx_bpf_dsq_nr_queued(dsq_of_cpu(cpu));

	return cpu_at(cpu)->is_offline || nr < 0 || nr * slice_ns < sweep_interval_ns / 2;
}

/*
 * Moves a task that has waited too long to the overdue queue. A task that is bound to one CPU moves
 * to the local DSQ of that CPU instead. That CPU may be going offline. The kernel then no longer
 * calls ops.dispatch for it, but still has to run the tasks there that the rest of the machine
 * waits for.
 */
static bool move_overdue(struct bpf_iter_scx_dsq *it, struct task_struct *p)
{
	const struct cpumask *allowed = p->cpus_ptr;
	s32 cpu = scx_bpf_task_cpu(p);
	u32 llc;

	if (is_bound(p)) {
		if (!has_local_room(cpu) || !compat_dsq_move(it, p, dsq_of_cpu(cpu), 0))
			return false;
		kick_idle(cpu); /* kernels before 6.19 do not wake the CPU for such a move */
		return true;
	}
	cpu = idle_cpu_in(allowed);
	llc = llc_at_idle(p, allowed, cpu);
	if (!compat_dsq_move(it, p, dsq_of(QUEUE_OVERDUE, llc), 0))
		return false;
	llc_at(llc)->has_overdue = true;
	kick_for(allowed, cpu);
	return true;
}
