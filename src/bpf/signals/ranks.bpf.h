/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Collectives of libraries without probes, inferred from the behavior of threads.
 * User space marks the processes that map such a library or its shared memory.
 * The launcher of such a process sleeps on a futex until another rank wakes it.
 * core/process.h describes what this means.
 *
 * Assumes that a task inside a futex call that wakes another task does so by
 * that call. An interrupt during the call could be mistaken for it.
 */
#include "bpf/compat.bpf.h"
#include "bpf/signals/roles.bpf.h"

static inline bool collective_is_mapped(struct task_struct *p)
{
	struct task_struct *leader = p->group_leader;

	return leader && bpf_task_storage_get(&collective_mappings, leader, NULL, 0);
}

/* Whether the task belongs to a process that has launched work. */
static inline bool is_rank(struct task_struct *p)
{
	struct process_state *process = process_find(p);

	return process && process->idle.since_ns;
}

/*
 * The launcher is woken, possibly from a wait for another rank. The tracepoint of a wakeup can come
 * before that of the sleep which it ends, so the wait may not have begun here.
 */
static inline void rank_wait_ended_by(struct task_struct *p, struct rank_wait *wait,
				      struct task_struct *waker)
{
	if (is_family(waker, p->tgid))
		wait->end = RANK_WAIT_FAMILY;
	else if (is_rank(waker) && compat_sleep_kind(waker) == SLEEP_FUTEX)
		wait->end = RANK_WAIT_RANK;
	else
		wait->end = RANK_WAIT_OTHER;
}

static inline void rank_wait_ends(struct task_struct *p, struct process_state *process,
				  struct rank_wait *wait)
{
	u64 since = process->task.phase_since_ns, nr = process->task.nr_transitions;

	process_write_begin(process);
	process_rank_ready(&phase_config, process, wait);
	process_write_end(process);
	phase_changed(p, process, nr, since);
}
