/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The Python stacks of out-of-memory errors, which stay after their processes have ended. They name
 * files of users, so they are not part of snapshots, which go to the gateway, into metrics and
 * into recordings. A client must ask for the stack of one error.
 */
#include "collect/kernel.h"
#include "daemon/server.h"

struct oom_stacks;

int oom_stacks_new(struct oom_stacks **ret);
struct oom_stacks *oom_stacks_free(struct oom_stacks *stacks);

/*
 * Takes the stack of the latest error of a process, if the BPF programs have read one, and keeps
 * it. An older error never takes the place of a newer one.
 */
void oom_stacks_keep(struct oom_stacks *stacks, struct kernel *kernel,
		     const struct process_state *process);

/* `uid` is as in lines_watch(). `time_ns` is that of the error. */
void oom_stacks_show(const struct oom_stacks *stacks, u32 uid, u32 pid, u64 time_ns,
		     struct reply *reply);

/* Stacks that had no place, or lost it to that of another process. */
u64 oom_stacks_dropped(const struct oom_stacks *stacks);
