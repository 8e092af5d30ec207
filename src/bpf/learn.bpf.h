/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * What the scheduler tells the learning of a task, and asks it: see learn.bpf.c. Not
 * hidden, so that each is verified once in a program and not again for each caller.
 */
#include "bpf/kernel.h"

/* Before a task first runs under us; its tier. Without memory it has the default one. */
u32 learn_task_begins(struct task_struct *p __arg_trusted);

/* Asked of the scheduler: the current task is of this tier from now on. */
int sched_tier_changed(struct task_struct *p __arg_trusted, u32 tier);

/* It left its CPU, or goes on; its tier from now on. */
u32 learn_task_stops(struct task_struct *p __arg_trusted, u64 ran_ns, bool sleeps, u64 now);
