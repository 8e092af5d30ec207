/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the class of a task (core/policy.h), and preempts CPUs for the classes
 * that may do so.
 */
#include "bpf/sched/victims.bpf.h"
#include "bpf/signals/consumers.bpf.h"

/* For so long after a poll, the work that a launcher polls for is due. */
#define POLLED_NS (2 * POLL_NS)

/* Whether the launcher cannot go on before this task has done its work. */
static bool is_awaited(struct task_struct *p, bool holds, struct thread_state *thread,
		       const struct process_state *process, u64 now)
{
	const struct consumer *row = consumer_at(&thread->consumer);

	if (!row)
		return false;
	if (process && thread->consumer.tgid == (u32)p->tgid)
		return holds && role_is_needed(&thread->evidence, process_launches(process),
					       row->fed_ns, now);
	return row->holds_gpu && (row->waits || now < row->polled_ns + POLLED_NS ||
				  role_delays_from_outside(&thread->evidence, row->fed_ns));
}

/* When the process with this leader opened its first GPU, if that was just now; 0 otherwise. */
static u64 just_opened_ns(struct task_struct *leader, u64 now)
{
	const struct gpu_opened *opened =
		leader ? bpf_task_storage_get(&gpu_holders, leader, NULL, 0) : NULL;

	return opened && now < opened->since_ns + OPENING_NS ? opened->since_ns : 0;
}

/* The file that a process executes; a fork executes that of its parent. */
static struct inode *program_of(struct task_struct *p)
{
	return BPF_CORE_READ(p, mm, exe_file, f_inode);
}

#define OPENER_LEVELS 2

/*
 * Whether the process of this task began since a process opened its first GPU, of which it is a
 * child, or a grandchild over a fork server. A process that executes another program is not part
 * of the job for that reason, and neither is one of another user or cgroup.
 */
static bool was_started_by_opener(struct task_struct *p, struct task_struct *leader, u64 now)
{
	struct task_struct *at = p;
	struct inode *program;
	u64 since = 0;

	for (u32 i = 0; i < OPENER_LEVELS && at && !since; i++) {
		at = at->real_parent;
		since = at ? just_opened_ns(at->group_leader, now) : 0;
	}
	if (!since || !leader || leader->start_time < since || !is_one_tenant(p, at))
		return false;
	program = program_of(p);
	return program && program == program_of(at);
}

static bool is_opening_time(u64 now)
{
	return now <= new_roles.opened_ns + OPENING_NS;
}

/* Some process has just opened its first GPU: find out whether this task is part of it. */
static void see_opening(struct task_struct *p, struct task_struct *leader, struct class_view *view)
{
	if (!is_opening_time(view->now) || (p->flags & PF_KTHREAD) ||
	    !rule_on(policy.rules_off, RULE_OPENING))
		return;
	view->opens = just_opened_ns(leader, view->now) != 0;
	view->parent_opens = !view->opens && was_started_by_opener(p, leader, view->now);
}

static u32 class_by_signals(struct task_struct *p, bool woken, u64 now)
{
	struct task_struct *leader = p->group_leader; /* once: see process_led_by() */
	struct class_view view = { .now = now, .woken = woken };
	const struct busy_estimate *busy;
	const struct consumer *row;
	struct process_state *process;
	struct thread_state *thread;
	struct sched_task *task;
	bool holds;

	see_opening(p, leader, &view);
	thread = ml_seen ? thread_find(p) : NULL;
	view.role = thread ? thread->role : ROLE_OTHER;
	if (view.role == ROLE_OTHER)
		return class_of(&view, policy.rules_off);
	process = process_led_by(leader);
	holds = holds_gpu_led_by(leader);
	if (process && thread) {
		busy = busy_of(thread, process);
		view.last_sync_ns = process->task.signals.last_sync_ns;
		view.cycle_ns = step_cycle_ns(&process->step);
		view.device_busy = phase_is_busy(process->task.phase) || busy->since_ns;
		view.in_collective = process->task.phase == PHASE_COLLECTIVE;
		view.in_sync = thread_call_kind(thread) == CALL_KIND_SYNC;
		view.expected_end_ns = busy_expected_end(busy, process_launches(process));
	}
	if (view.role == ROLE_COLLECTIVE_HELPER) {
		task = sched_task_of(p);
		view.polls = task && task->polls;
	}
	if (view.role == ROLE_LAUNCHER && process && thread)
		view.polls = polls_for_work(thread, process);
	if (view.role == ROLE_CRITICAL && thread) {
		view.awaited = is_awaited(p, holds, thread, process, now);
	} else if (view.role == ROLE_LOADER && thread) {
		row = consumer_at(&thread->consumer);
		if (!row || !row->holds_gpu)
			return CLASS_ORDINARY;
		view.consumer_waits = row->waits;
		view.consumer_waited = row->waited_ns && now < row->waited_ns + LATE_MAX_NS;
	} else if (!holds) {
		return CLASS_ORDINARY;
	}
	return class_of(&view, policy.rules_off);
}

__noinline u32 classify_ml(struct task_struct *p __arg_trusted, bool woken, u64 now)
{
	/* On a machine without ML processes, this is all that it costs. */
	if (!ml_seen && !is_opening_time(now))
		return CLASS_ORDINARY;
	return class_by_signals(p, woken, now);
}

/* Tasks without which the machine does not work. */
static bool is_system(struct task_struct *p, const struct sched_task *task)
{
	return (p->flags & PF_KTHREAD) || p->tgid == 1 || task->is_zernel ||
	       group_at(task->group)->is_system;
}

static bool is_idle_task(struct task_struct *p, const struct sched_task *task, u64 now)
{
	return p->policy == SCHED_IDLE || group_is_idle(p, task->group, now);
}

/*
 * The turn of a task of the system ended too early, or it is zerneld. A service that
 * computes for longer is an ordinary task after its first slice.
 */
static bool is_system_turn(struct task_struct *p, const struct sched_task *task, u64 now)
{
	return task->class == CLASS_SYSTEM && (before(now, task->slice_since_ns + slice_ns / 2) ||
					       (u32)p->tgid == policy.daemon_tgid);
}

static u32 classify(struct task_struct *p, struct sched_task *task, bool woken, u64 now)
{
	u32 class = classify_ml(p, woken, now);

	if (is_idle_task(p, task, now))
		return CLASS_IDLE;
	if (class != CLASS_ORDINARY || !(woken || is_system_turn(p, task, now)) ||
	    !is_system(p, task))
		return class;
	return cpu_at(scx_bpf_task_cpu(p))->system_debt_ns <= SYSTEM_DEBT_LIMIT_NS ? CLASS_SYSTEM
										   : CLASS_ORDINARY;
}

/* Whether a task of this class may preempt the task that runs on the CPU. Not static: see
 * may_run_on(). */
__noinline bool can_take(u32 cpu, u32 class)
{
	return !cpu_at(cpu)->is_offline &&
	       rule_of(cpu_at(cpu)->class)->rank < rule_of(class)->rank &&
	       (!is_promoted(class) || cpu_at(cpu)->debt_ns <= DEBT_LIMIT_NS);
}

/* The next search skips the CPU. */
static void mark_taken(u32 cpu, u32 class)
{
	cpu_at(cpu)->class = class;
	count(class, DECISION_PREEMPTED);
}

static void take(u32 cpu, u32 class)
{
	mark_taken(cpu, class);
	scx_bpf_kick_cpu(cpu, bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT));
}

#define ANY_GROUP GROUP_MAX

/*
 * Searches for a CPU whose task has a lower rank, preferably the CPU of the task itself.
 * `group`: only CPUs that run a task of this cgroup that is not capped itself. Capped tasks
 * would preempt each other without end, and all other tasks would wait: a task that
 * preempts goes to the local DSQ of the CPU, which the kernel serves without a dispatch.
 * Returns the CPU to preempt, or -1.
 */
__noinline int cpu_to_take(struct task_struct *p __arg_trusted, u32 class, u32 group)
{
	struct search search = search_from(scx_bpf_task_cpu(p));
	u32 i;

	bpf_for(i, 0, search.nr) {
		u32 cpu = search_cpu(&search, i);

		if (!can_take(cpu, class) || !may_run_on(p, cpu) ||
		    (group != ANY_GROUP && (cpu_at(cpu)->group != group || cpu_at(cpu)->is_capped)))
			continue;
		mark_taken(cpu, class);
		return cpu;
	}
	return -1;
}

/* Records which task runs on a CPU from now on. */
static void take_over(u32 cpu, const struct sched_task *task)
{
	struct cpu_state *state = cpu_at(cpu);

	state->class = task->class;
	state->is_capped = task->is_capped;
	state->tier = tier_of_task(task);
	state->rate = task->rate;
	state->group = task->group;
	victims_note(cpu);
}

/*
 * The launcher went to sleep outside of any call. This CPU searches for a loader
 * of the launcher next. If more loaders wait, this function preempts other CPUs
 * of the LLC for these loaders.
 */
__noinline int want_loaders(struct task_struct *p __arg_trusted)
{
	u32 own = scx_bpf_task_cpu(p), llc = queue_of_cpu(own), i;
	struct search search;
	s32 nr;

	if (!may_wait(QUEUE_LOADERS, llc))
		return 0;
	nr = scx_bpf_dsq_nr_queued(dsq_of(QUEUE_LOADERS, llc)) - 1;
	if (nr <= 0 || !rule_on(policy.rules_off, RULE_LOADER) ||
	    !rule_on(policy.rules_off, RULE_PREEMPT))
		return 0;
	search = search_from(own);
	bpf_for(i, 1, search.nr_near) {
		u32 cpu = search_cpu(&search, i);

		if (!can_take(cpu, CLASS_WANTED_LOADER))
			continue;
		take(cpu, CLASS_WANTED_LOADER);
		if (--nr <= 0)
			break;
	}
	return 0;
}

/*
 * Whether a launcher that goes to sleep waits for another launcher of its GPU: it has just woken
 * one, or another one launched last and does not sleep.
 */
static bool waits_for_launcher(const struct thread_state *thread, struct process_state *process,
			       const struct consumer *own)
{
	const struct consumer *other;

	if (role_delays(&thread->evidence, process_launches(process)))
		return true;
	if (last_consumer(process)->tid == thread->consumer.tid)
		return false;
	other = consumer_at(last_consumer(process));
	return other && other->device == own->device && !other->waits;
}

/* A launcher begins or ends a wait for data. */
static void note_launcher(struct task_struct *p, bool asleep)
{
	struct thread_state *thread;
	struct process_state *process;
	struct consumer *row;

	if (!ml_seen)
		return;
	thread = thread_find(p);
	if (!thread || thread->role != ROLE_LAUNCHER || (asleep && thread->depth))
		return;
	process = process_find(p);
	row = consumer_at(&thread->consumer);
	if (!process || !row)
		return;
	if (!holds_gpu(p)) {
		row->holds_gpu = false;
		return;
	}
	if (!row->holds_gpu)
		__sync_fetch_and_add(&new_roles.nr_found, 1); /* of its loaders */
	row->holds_gpu = true;
	row->waits = asleep && !waits_for_launcher(thread, process, row);
	if (row->waits && row->has_loaders)
		want_loaders(p);
}
