/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * What the scheduler tells the learning of a task, and asks it: see learn.bpf.c. Not
 * hidden, so that each is verified once in a program and not again for each caller.
 */
#include "bpf/kernel.h"

/* Before a task first runs under us. -ENOMEM leaves it with the default tier. */
int learn_task_begins(struct task_struct *p __arg_trusted);

/* It left its CPU. */
int learn_task_stops(struct task_struct *p __arg_trusted, u64 ran_ns, bool sleeps);

/* The tier a task has at the moment. */
u32 learn_task_tier(struct task_struct *p __arg_trusted);
