/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Clients that want the current stack of a launcher, also of one that sleeps or is stopped.
 * zernel-discover reads it, because a read of the memory of a process can hang.
 */
#include "daemon/discovery.h"
#include "daemon/server.h"
#include "daemon/supervisor.h"

struct stacks;

/* Both must outlive it. */
int stacks_new(struct supervisor *supervisor, struct discovery *discovery, struct stacks **ret);
/* No client may be left. */
struct stacks *stacks_free(struct stacks *stacks);

/* Reads the stack, or refuses it. `uid` is as in lines_watch(). */
void stacks_look(struct stacks *stacks, u32 uid, pid_t pid, struct reply *reply);
