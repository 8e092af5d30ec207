/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* What the scheduler tells the learning of a task, and asks it: see learn.bpf.c. */
#include "bpf/kernel.h"

/* Before a task first runs under us. -ENOMEM leaves it with the default tier. */
__hidden int learn_task_begins(struct task_struct *p);

/* It left its CPU. */
__hidden int learn_task_stops(struct task_struct *p, u64 ran_ns, bool sleeps);

/* The tier a task has at the moment. */
__hidden u32 learn_task_tier(struct task_struct *p);
