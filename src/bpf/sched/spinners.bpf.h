/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A spinning sync gives up its CPU and must run again when its GPU is done. A
 * collective helper that polls for other ranks must poll at intervals, because
 * the collective ends for it only when it polls. Slices end only at ticks, so a
 * timer of each LLC preempts a task in time, and a timer of each CPU ends the short
 * turn of a sync whose GPU is not done.
 *
 * A task is counted (nr_waiting) before the kernel inserts it into the queue, and sets
 * spinner_due_ns in between. A CPU that serves the queue clears spinner_due_ns first,
 * and looks again soon if it sees fewer tasks than are counted.
 */
#include "bpf/sched/classes.bpf.h"

#define CLOCK_MONOTONIC 1 /* linux/time.h */
#define LOOK_AGAIN_NS	NSEC_PER_MSEC

struct spinner_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LLCS);
	__type(key, u32);
	__type(value, struct spinner_timer);
} spinner_timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct spinner_timer);
} turn_timers SEC(".maps");

/* It polls and gives up its CPU by itself. */
static bool yields(struct task_struct *p)
{
	struct thread_state *thread = thread_find(p);

	return thread && (thread->role == ROLE_COLLECTIVE_HELPER || role_polls(&thread->evidence));
}

/* When a task that waits for its GPU or for other ranks should run again. */
static u64 spinner_due(struct task_struct *p, u64 now)
{
	struct process_state *process = process_find(p);

	if (!process || yields(p))
		return now + POLL_NS;
	return spin_due(
		busy_expected_end(busy_of(thread_find(p), process), process_launches(process)),
		now);
}

/* Preempts a CPU on which the first spinner that is due may run. */
static int spinner_timer_fired(void *map, u32 *llc, struct spinner_timer *timer)
{
	u64 now = bpf_ktime_get_ns(), nr_seen = 0;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_SPINNERS, *llc), 0) {
		struct sched_task *task = sched_task_of(p);
		s32 cpu;

		if (nr_seen++ == WALK_MAX)
			break;
		if (!task || before(now, task->due_ns))
			continue;
		cpu = cpu_to_take(p, CLASS_FEEDER, ANY_GROUP);
		if (cpu >= 0)
			scx_bpf_kick_cpu(
				cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT));
		break;
	}
	return 0;
}

static void spinner_timer_start(u32 llc, u64 due, u64 now)
{
	struct spinner_timer *timer = bpf_map_lookup_elem(&spinner_timers, &llc);

	if (!timer)
		return;
	bpf_timer_set_callback(&timer->timer, spinner_timer_fired);
	bpf_timer_start(&timer->timer, before(now, due) ? due - now : 0, 0);
}

/* A spinner of the LLC is due at this time, or an earlier one. */
static void expect_spinner(u32 llc, u64 due, u64 now)
{
	u64 *first = &llc_at(llc)->spinner_due_ns, was = *first;

	if (was && !before(due, was))
		return;
	if (!__sync_bool_compare_and_swap(first, was, due))
		due = now; /* another CPU was faster: look at the queue now */
	spinner_timer_start(llc, due, now);
	/* Another CPU may have set an earlier time, and this one replaced its timer. */
	was = *first;
	if (was && before(was, due))
		spinner_timer_start(llc, was, now);
}

/* Returns its place in the queue: the first task there is due first. */
static u64 spinner_queued(struct task_struct *p, struct sched_task *task, u32 llc, u64 now)
{
	task->due_ns = spinner_due(p, now);
	expect_spinner(llc, task->due_ns, now);
	return task->due_ns;
}

static bool spinner_is_due(u32 llc, u64 now)
{
	u64 due = llc_at(llc)->spinner_due_ns;

	return due && !before(now, due);
}

/*
 * A critical task goes to sleep, and may have left its result in memory. The launchers of its
 * cgroup that poll look for it now, unless the cgroup has used up its promotion. The walk is short,
 * because a task may sleep very often.
 */
__noinline int pollers_look(struct task_struct *p __arg_trusted, u32 group, u64 now)
{
	u32 llc = queue_of_cpu(scx_bpf_task_cpu(p));
	const struct thread_state *thread;
	struct task_struct *poller;
	bool found = false;
	u64 nr_seen = 0;

	thread = thread_find(p);
	if (!thread || thread->role != ROLE_CRITICAL || !may_wait(QUEUE_SPINNERS, llc) ||
	    spinner_is_due(llc, now) || !group_may_promote(group))
		return 0;
	bpf_for_each(scx_dsq, poller, dsq_of(QUEUE_SPINNERS, llc), 0) {
		struct sched_task *task = sched_task_of(poller);

		if (nr_seen++ == WALK_MAX)
			break;
		thread = thread_find(poller);
		if (!task || !thread || task->group != group || !role_polls(&thread->evidence))
			continue;
		task->due_ns = now;
		found = true;
	}
	if (found)
		expect_spinner(llc, now, now);
	return 0;
}

static int turn_timer_fired(void *map, u32 *cpu, struct spinner_timer *timer)
{
	if (cpu_at(*cpu)->in_turn)
		scx_bpf_kick_cpu(*cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT));
	return 0;
}

/*
 * The sync gets a short turn unless its GPU should be done about now. A task that polls and
 * yields gives up the CPU by itself, unless it has work to do by now.
 */
static void begin_turn(struct task_struct *p, struct sched_task *task, u32 cpu, u64 now)
{
	struct spinner_timer *timer = bpf_map_lookup_elem(&turn_timers, &cpu);

	if (!timer || yields(p) || classify_ml(p, false, now) != CLASS_SPINNER)
		return;
	task->in_turn = true;
	bpf_timer_set_callback(&timer->timer, turn_timer_fired);
	bpf_timer_start(&timer->timer, SPIN_TURN_NS, 0);
}

/* A timer that an earlier attach left behind is used again. */
static void make_spinner_timers(u32 nr_llcs, u32 nr_cpus)
{
	struct spinner_timer *timer;
	u32 i;

	bpf_for(i, 0, nr_llcs) {
		timer = bpf_map_lookup_elem(&spinner_timers, &i);
		if (timer)
			bpf_timer_init(&timer->timer, &spinner_timers, CLOCK_MONOTONIC);
	}
	bpf_for(i, 0, nr_cpus) {
		timer = bpf_map_lookup_elem(&turn_timers, &i);
		if (timer)
			bpf_timer_init(&timer->timer, &turn_timers, CLOCK_MONOTONIC);
	}
}

/* Dispatches a spinner whose GPU should be done, and finds when the next one is due. */
__noinline int serve_spinner(u32 llc, u32 cpu, u64 now)
{
	struct sched_cpu *here = this_cpu();
	struct task_struct *p;
	bool found = false;
	u64 next = 0;

	if (!here)
		return false;
	here->nr_looked = 0;
	__sync_lock_test_and_set(&llc_at(llc)->spinner_due_ns, 0);
	bpf_for_each(scx_dsq, p, dsq_of(QUEUE_SPINNERS, llc), 0) {
		struct sched_task *task = sched_task_of(p);

		if (here->nr_looked++ == WALK_MAX)
			break;
		if (!task)
			continue;
		if (!found && !before(now, task->due_ns) && may_run_on(p, cpu) &&
		    compat_dsq_move(&___it, p, local_dsq(), 0)) {
			task->class = CLASS_FEEDER;
			compat_set_slice(p, rule_of(CLASS_FEEDER)->slice_ns);
			count(CLASS_FEEDER, DECISION_PROMOTED);
			begin_turn(p, task, cpu, now);
			found = true;
		} else if (!next || before(task->due_ns, next)) {
			next = task->due_ns;
		}
	}
	if (here->nr_looked < *nr_waiting(QUEUE_SPINNERS, llc) &&
	    (!next || before(now + LOOK_AGAIN_NS, next)))
		next = now + LOOK_AGAIN_NS;
	if (next)
		expect_spinner(llc, next, now);
	return found;
}
