/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A spinning sync gives up its CPU and must run again when its GPU is done. A
 * collective helper that polls for other ranks must poll at intervals, because
 * the collective ends for it only when it polls. Slices end only at ticks, so a
 * timer of each LLC preempts a task in time.
 */
#include "bpf/sched/classes.bpf.h"

#define CLOCK_MONOTONIC 1 /* linux/time.h */

struct spinner_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LLCS);
	__type(key, u32);
	__type(value, struct spinner_timer);
} spinner_timers SEC(".maps");

/* When a task that waits for its GPU or for other ranks should run again. */
static u64 spinner_due(struct task_struct *p, u64 now)
{
	struct process_state *process = process_find(p);
	struct thread_state *thread = thread_find(p);
	u64 end = process ? busy_expected_end(&process->busy) : 0;

	if (thread && thread->role == ROLE_COLLECTIVE_HELPER)
		return now + POLL_NS;
	return end > SPIN_MARGIN_NS ? end - SPIN_MARGIN_NS : now;
}

/* Sets when the first spinner of an LLC is due; 0: no spinner waits. */
static void expect_spinner(u32 llc, u64 due, u64 now)
{
	struct spinner_timer *timer = bpf_map_lookup_elem(&spinner_timers, &llc);

	llc_at(llc)->spinner_due_ns = due;
	if (timer && due)
		bpf_timer_start(&timer->timer, before(now, due) ? due - now : 0, 0);
}

static void spinner_queued(struct task_struct *p, struct sched_task *task, u32 llc, u64 now)
{
	u64 first = llc_at(llc)->spinner_due_ns;

	task->due_ns = spinner_due(p, now);
	if (!first || before(task->due_ns, first))
		expect_spinner(llc, task->due_ns, now);
}

static bool spinner_is_due(u32 llc, u64 now)
{
	u64 due = llc_at(llc)->spinner_due_ns;

	return due && !before(now, due);
}

static int spinner_timer_fired(void *map, u32 *llc, struct spinner_timer *timer)
{
	u32 nr = topology.nr_cpus, cpu;

	bpf_for(cpu, 0, nr) {
		if (queue_of_cpu(cpu) == *llc && can_take(cpu, CLASS_FEEDER)) {
			take(cpu, CLASS_FEEDER);
			break;
		}
	}
	return 0;
}

/* A timer that an earlier attach left behind is used again. */
static void make_spinner_timer(u32 llc)
{
	struct spinner_timer *timer = bpf_map_lookup_elem(&spinner_timers, &llc);

	if (!timer)
		return;
	bpf_timer_init(&timer->timer, &spinner_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&timer->timer, spinner_timer_fired);
}

/* Dispatches a spinner whose GPU should be done, and finds when the next one is due. */
__noinline int serve_spinner(u32 llc, u32 cpu, u64 now)
{
	struct task_struct *p;
	bool found = false;
	u64 next = 0;

	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_SPINNERS, llc), 0) {
		struct sched_task *task = sched_task_of(p);

		if (!task)
			continue;
		if (!found && !before(now, task->due_ns) && may_run_on(p, cpu) &&
		    compat_dsq_move(&___it, p, local_dsq(), 0)) {
			task->class = CLASS_FEEDER;
			compat_set_slice(p, rule_of(CLASS_FEEDER)->slice_ns);
			count(CLASS_FEEDER, DECISION_PROMOTED);
			found = true;
		} else if (!next || before(task->due_ns, next)) {
			next = task->due_ns;
		}
	}
	expect_spinner(llc, next, now);
	return found;
}
