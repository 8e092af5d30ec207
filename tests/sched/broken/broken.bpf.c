// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The scheduler with one fault, to test an ejection: it does not enqueue a task
 * named "dropped" that has to wait. Everything else is the scheduler's own
 * source; only its call that inserts a task into a queue is replaced.
 */
#include "bpf/compat.bpf.h"

static inline bool is_dropped(struct task_struct *p)
{
	return __builtin_memcmp(p->comm, "dropped", 8) == 0;
}

#define compat_dsq_insert_vtime(p, args...)                                                        \
	do {                                                                                       \
		if (!is_dropped(p))                                                                \
			compat_dsq_insert_vtime(p, args);                                          \
	} while (0)

#include "bpf/sched/sched.bpf.c"
