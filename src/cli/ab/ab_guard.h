/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A process that restores the initial state of the scheduler when the experimenting process
 * requests it or ends for any reason.
 */
#include <sys/types.h>
#include "core/snapshot.h"

struct ab_guard {
	pid_t pid;
	int fd;
};

/* `state` is one of enum snapshot_sched_state. */
int ab_guard_begin(struct ab_guard *guard, const char *socket, u32 state);

/* Both end the guard. -EIO: the state could not be restored. */
int ab_guard_restore(struct ab_guard *guard);
void ab_guard_dismiss(struct ab_guard *guard);

/* The method of zerneld that switches to this state. */
const char *ab_guard_method(u32 state);
