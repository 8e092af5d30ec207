/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The calls of the scheduler into learning: see learn.bpf.c. They are global
 * functions, so the verifier checks each one once, not once per caller.
 */
#include "bpf/kernel.h"
#include "core/learner.h"

/*
 * Called before a task first runs in this scheduler, and after it became another
 * program. Returns its tier.
 */
u32 learn_task_begins(struct task_struct *p __arg_trusted, struct learner *l __arg_nonnull);

/*
 * Called when a task leaves its CPU, or keeps it for another slice. Returns its
 * tier from now on.
 */
u32 learn_task_stops(struct task_struct *p __arg_trusted, struct learner *l __arg_nonnull,
		     u64 ran_ns, bool sleeps, u64 now);
