/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * In which cache a task waits. Usually in that of its CPU. If an idle CPU was found for it, in the
 * cache of that CPU, which looks there first. If its cache is slower than that of a random CPU on
 * which the task may run, perhaps in that one (core/balance.h).
 */
#include "bpf/sched/overdue.bpf.h"
#include "core/balance.h"

/* Measures the speed of a cache. If several CPUs get here at the same time, one measures. */
static void measure_speed(struct llc *llc, u64 now)
{
	struct llc_speed *speed = &llc->speed;
	u64 since = speed->since_ns;

	if (before(now, since + BALANCE_SPAN_NS) ||
	    !__sync_bool_compare_and_swap(&speed->since_ns, since, now))
		return;
	speed->average =
		before(now, since + BALANCE_STALE_NS)
			? balance_speed(speed->average, llc->clock - speed->clock, now - since)
			: 0;
	speed->clock = llc->clock;
}

/* Tasks that wait for their turn by virtual time. */
static u32 nr_in_order(u32 llc)
{
	return *nr_waiting(QUEUE_ORDINARY, llc) + *nr_waiting(QUEUE_LOADERS, llc);
}

/*
 * How much slower the cache is than the other one. No task has entered the other one for long if
 * its speed is old. It is fast, unless tasks wait there: those that are bound to its CPUs do.
 */
static u64 lag_behind(u32 own, u32 other, u64 now)
{
	if (before(llc_at(other)->speed.since_ns + BALANCE_STALE_NS, now))
		return nr_in_order(other) ? 0 : BALANCE_ONE;
	return balance_lag(llc_at(own)->speed.average, llc_at(other)->speed.average);
}

/* Between nodes, only a larger difference counts. */
static bool is_drawn(u32 own, u32 other, bool is_far, bool woken, u64 now)
{
	u64 lag = lag_behind(own, other, now) >> is_far;
	u64 chance = balance_chance(lag, nr_in_order(own), llc_size(own));

	return lag >= (woken ? BALANCE_LEAST_WOKEN : BALANCE_LEAST) &&
	       bpf_get_prandom_u32() % BALANCE_ONE < chance;
}

/*
 * The CPU to whose cache a task moves, or -1. The caller kicks it once the task is there: it may go
 * idle meanwhile. A cache moves no task to one that is only taken by tasks of other schedulers. Not
 * static: see may_run_on().
 */
__noinline s32 balanced_cpu(struct task_struct *p __arg_trusted, bool woken, u64 now)
{
	u32 own = llc_of_task(p, p->cpus_ptr), cpu, other;
	bool is_far;

	measure_speed(llc_at(own), now);
	if (is_bound(p) || !llc_at(own)->speed.average || !nr_in_order(own))
		return -1;
	cpu = cpu_in_place(bpf_get_prandom_u32() % topology.nr_placed);
	other = queue_of_cpu(cpu);
	if (other == own || cpu_at(cpu)->is_offline || !may_run_on(p, cpu))
		return -1;
	is_far = node_of_cpu(cpu) != node_of_cpu(scx_bpf_task_cpu(p));
	if (!is_drawn(own, other, is_far, woken, now))
		return -1;
	return is_served_lately(other, now) || scx_bpf_test_and_clear_cpu_idle(cpu) ? (s32)cpu : -1;
}
