/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Roles: launcher and loader. The thread that opens a GPU is its launcher until
 * another thread launches work. A process that was forked from a process with a
 * launcher and has not called exec is a loader, whether the fork was before or
 * after the first call of the parent. It stops being a loader when it makes calls
 * of its own.
 */
#include "bpf/signals/state.bpf.h"

static inline bool is_launcher(const struct thread_state *thread)
{
	return thread && thread->role == ROLE_LAUNCHER;
}

/* Whether `p` is a thread of the process or of a child process. */
static inline bool is_family(struct task_struct *p, u32 tgid)
{
	return (u32)p->tgid == tgid || (u32)BPF_CORE_READ(p, real_parent, tgid) == tgid;
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
	if (is_first) {
		process_expect_samples(process);
		loaders_wanted(p, now);
	}
}

/* A thread that only opened the GPU is no launcher if another thread launches the work. */
static inline void launcher_confirm(struct task_struct *p, struct thread_state *thread,
				    const struct process_state *process, u64 now)
{
	if (is_launcher(thread) && !thread->has_fed && process->launcher_tid != (u32)p->pid)
		thread_set_role(p, thread, ROLE_OTHER, now);
}
