/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A process that restores the nice values when zerneld is killed. It shares a table of the changed
 * threads with zerneld, and a lock that the kernel releases when zerneld ends. Signals that a
 * service manager sends to all processes of a service do not end it before zerneld.
 */
#include "base/macros.h"
#include "daemon/nice_thread.h"

#define NICE_THREADS_MAX 4096

struct nice_watch;

/* Starts the process `zerneld-restore`. */
int nice_watch_new(struct nice_watch **ret);
/* Kills it. The values of all threads must be restored before. */
struct nice_watch *nice_watch_free(struct nice_watch *watch);
DEFINE_CLEANUP(struct nice_watch, nice_watch_free);

/* Whether it can restore values: it was neither killed nor stopped. */
bool nice_watch_is_alive(struct nice_watch *watch);

/*
 * Adds a thread before its nice value is changed. The pointer is valid until it is passed to
 * nice_watch_remove(), after the value is restored. NULL: the table is full.
 */
const struct nice_thread *nice_watch_add(struct nice_watch *watch,
					 const struct nice_thread *thread);
void nice_watch_remove(struct nice_watch *watch, const struct nice_thread *thread);
