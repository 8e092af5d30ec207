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

/* Finds loaders that were forked before their parent, the current task, was known. */
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

/* A thread that only opened the GPU is no launcher if another thread launches the work. */
static inline void launcher_confirm(struct task_struct *p, struct thread_state *thread,
				    const struct process_state *process, u64 now)
{
	if (is_launcher(thread) && !thread->has_fed && process->launcher_tid != (u32)p->pid)
		thread_set_role(p, thread, ROLE_OTHER, now);
}
