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

/* `acts`: whether zerneld acted at the start. */
int ab_guard_begin(struct ab_guard *guard, const char *socket, bool acts);

/* Both end the guard. -EIO: the state could not be restored. */
int ab_guard_restore(struct ab_guard *guard);
void ab_guard_dismiss(struct ab_guard *guard);

/* The method of zerneld that makes it act, or stop. */
const char *ab_guard_method(bool acts);
