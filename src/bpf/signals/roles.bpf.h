/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Roles, from the waits between tasks (core/role.h). The thread that opens a GPU is its launcher
 * until another thread launches work; a process may have several launchers. A task that ends a
 * wait of a launcher is a loader if it belongs to the family of the launcher: the threads of its
 * process, and processes that descend from it, over a fork server and after an exec too. Any
 * other task that a launcher waits for is on its critical path, if it is of the same user and
 * cgroup: a service of the machine gets no other role because a job uses it.
 *
 * A process that is forked from a process with a launcher is taken for a loader until it has
 * had time to prove it, unless the launcher has loaders already, and again after its exec. If it
 * forks before it has proven anything, it is a fork server: its children are taken for loaders
 * instead. A process stops being a loader when it makes calls of its own.
 */
#include "bpf/compat.bpf.h"
#include "bpf/signals/consumers.bpf.h"

static inline bool is_launcher(const struct thread_state *thread)
{
	return thread && thread->role == ROLE_LAUNCHER;
}

#define FAMILY_LEVELS 3

/* Whether `p` is a thread of the process or of a process that descends from it. */
static inline bool is_family(struct task_struct *p, u32 tgid)
{
	struct task_struct *at = p;

	if ((u32)p->tgid == tgid)
		return true;
	for (u32 i = 0; i < FAMILY_LEVELS; i++) {
		at = BPF_CORE_READ(at, real_parent);
		if ((u32)BPF_CORE_READ(at, tgid) == tgid)
			return true;
	}
	return false;
}

/* Asks user space to run loaders_find(). */
static inline void loaders_wanted(struct task_struct *p, u64 now)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&nr_dropped_events, 1);
		return;
	}
	event_fill(event, EVENT_LAUNCHER, p, 0, now);
	bpf_ringbuf_submit(event, 0);
}

static inline void launcher_found(struct task_struct *p, struct thread_state *thread,
				  struct process_state *process, u64 now)
{
	bool is_first = !process->launcher_tid;

	thread_set_role(p, thread, ROLE_LAUNCHER, now);
	process->launcher_tid = p->pid;
	process->consumer_tgid = 0;
	consumer_begins(p, thread, process);
	consumer_feeds(thread, process, now);
	if (is_first) {
		process_expect_samples(process);
		loaders_wanted(p, now);
	}
}

/* A thread that only opened the GPU is no launcher if another thread launches the work. */
static inline void launcher_confirm(struct task_struct *p, struct thread_state *thread,
				    struct process_state *process, u64 now)
{
	if (!is_launcher(thread) || thread->has_fed || process->launcher_tid == (u32)p->pid)
		return;
	thread_set_role(p, thread, ROLE_OTHER, now);
	consumer_ends(thread, process);
}

/* The thread works for this launcher. */
static inline void works_for(struct thread_state *thread, const struct consumer_key *consumer)
{
	struct consumer *row;

	if (thread->consumer.tid == consumer->tid &&
	    thread->consumer.start_ns == consumer->start_ns)
		return;
	thread->consumer = *consumer;
	row = consumer_at(consumer);
	if (row)
		row->has_loaders = true;
}

/* The launcher waits for a task that is not of its family, or that it cannot do without. */
static __noinline __attribute__((unused)) int critical_found(struct task_struct *p,
							     struct task_struct *leader,
							     const struct consumer_key *consumer,
							     u32 distance, u64 now)
{
	struct thread_state *thread;
	struct process_state *process = process_led_by(leader);

	if (process && process->launcher_tid)
		return 0;
	thread = thread_get(p);
	if (!thread || (thread->role != ROLE_OTHER && thread->role != ROLE_CRITICAL))
		return 0;
	role_prove(&thread->evidence, distance, now);
	works_for(thread, consumer);
	thread_set_role(p, thread, ROLE_CRITICAL, now);
	return 0;
}

/*
 * A launcher that polled memory gives work to the GPU: another task brought it. No wakeup shows
 * which one, so it is taken to be the parent, if that task ran meanwhile.
 */
static inline void launcher_polled(struct task_struct *p, struct thread_state *thread, u64 now)
{
	struct role_evidence *evidence = &thread->evidence;
	struct task_struct *parent = p->real_parent;

	if (!role_polls(evidence) || !parent)
		return;
	evidence->nr_yields = 0;
	if (role_parent_ran(evidence, parent->nvcsw + parent->nivcsw) && is_one_tenant(p, parent))
		critical_found(parent, parent->group_leader, &thread->consumer, 1, now);
}

static inline bool is_launcher_of(struct task_struct *p, const struct thread_state *thread,
				  const struct process_state *process)
{
	return is_launcher(thread) && process->launcher_tid == (u32)p->pid;
}

/*
 * The process that a loader loads for: its own process, or the nearest one from which it
 * descends that has a launcher.
 */
static __noinline __attribute__((unused)) struct process_state *
consumer_process(struct task_struct *p)
{
	struct process_state *process = process_find(p);
	struct task_struct *parent = p->real_parent, *grand;

	if ((process && process->launcher_tid) || !parent)
		return process;
	process = process_find(parent);
	grand = parent->real_parent;
	if ((process && process->launcher_tid) || !grand)
		return process;
	return process_find(grand);
}
