/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the scheduler tells the learning of a task, and asks it: see learn.bpf.c. Not
 * hidden, so that each is verified once in a program and not again for each caller.
 */
#include "bpf/kernel.h"
#include "core/learner.h"

/* Before a task first runs under us, and when it has become another program; its tier. */
u32 learn_task_begins(struct task_struct *p __arg_trusted, struct learner *l __arg_nonnull);

/* It left its CPU, or goes on; its tier from now on. */
u32 learn_task_stops(struct task_struct *p __arg_trusted, struct learner *l __arg_nonnull,
		     u64 ran_ns, bool sleeps, u64 now);
