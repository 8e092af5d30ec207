/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who launches, and who loads for it. The thread that opens a device is its
 * launcher until another one feeds it. A process that forked from a launcher's
 * and is still the same program is a loader, whether it was born before its
 * parent made the first call or after, until it makes calls of its own.
 */
#include "bpf/signals/state.bpf.h"

static inline bool is_launcher(const struct thread_state *thread)
{
	return thread && thread->role == ROLE_LAUNCHER;
}

/* Whether `p` is one of the process's threads, or a fork of it. */
static inline bool is_family(struct task_struct *p, u32 tgid)
{
	return (u32)p->tgid == tgid || (u32)BPF_CORE_READ(p, real_parent, tgid) == tgid;
}

/* Loaders that were there before anything was known of their parent, the current task. */
__hidden int loaders_find(u64 now);

static inline void launcher_found(struct task_struct *p, struct thread_state *thread,
				  struct process_state *process, u64 now)
{
	bool is_first = !process->launcher_tid;

	thread_set_role(p, thread, ROLE_LAUNCHER, now);
	process->launcher_tid = p->pid;
	process->consumer_tgid = 0;
	if (is_first) {
		process_expect_samples(process);
		loaders_find(now);
	}
}

/* A thread that only opened the device, and left it to another to feed it, was no launcher. */
static inline void launcher_confirm(struct task_struct *p, struct thread_state *thread,
				    const struct process_state *process, u64 now)
{
	if (is_launcher(thread) && !thread->has_fed && process->launcher_tid != (u32)p->pid)
		thread_set_role(p, thread, ROLE_OTHER, now);
}
