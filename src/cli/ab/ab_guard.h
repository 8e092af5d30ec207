/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A process that puts the scheduler back into the state it was found in, as soon as the
 * one that experiments with it says so or is gone, however that came about.
 */
#include <sys/types.h>
#include "core/snapshot.h"

struct ab_guard {
	pid_t pid;
	int fd;
};

/* `state` is one of enum snapshot_sched_state. */
int ab_guard_begin(struct ab_guard *guard, const char *socket, u32 state);

/* Both end it. -EIO: the state could not be restored. */
int ab_guard_restore(struct ab_guard *guard);
void ab_guard_dismiss(struct ab_guard *guard);

/* What zerneld is asked for to get there. */
const char *ab_guard_method(u32 state);
