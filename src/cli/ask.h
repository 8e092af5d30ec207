/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Requests to zerneld. Each failure is logged once, with what to do about it. */
#include "core/snapshot.h"
#include "ipc/client.h"

/* Logs why the connection to zerneld failed, and what to do about it. */
void ask_log_failure(const char *socket, int err);

/* Logs a failed request, and returns `err`. */
int ask_log_refusal(int err, const struct client_error *error);

/* Connects and sends hello. */
int ask_connect(const char *socket, struct client **ret);

/* The caller releases the result with client_data_done(). A NULL `ret` discards it. */
int ask(struct client *client, const char *method, const char *params, struct client_data *ret);

/* The current snapshot. */
int ask_snapshot(const char *socket, struct snapshot **ret);
/*
 * The ended jobs, or the newest one that `who` names, with its processes. -ENOENT: there is none,
 * and nothing was logged.
 */
int ask_ended(const char *socket, const char *who, struct snapshot **ret);
/* Prints the current snapshot as one line of JSON. */
int ask_print_snapshot(const char *socket);

/*
 * The process that launches work on a GPU and that `who` selects, as in answers/choose.h. -ENOENT:
 * there is none. -EINVAL: there are several.
 */
int ask_process(const char *socket, const char *who, u32 *ret_pid);
/* Asks a method that watches a process, and replies after so many seconds. */
int ask_watch(const char *socket, const char *method, u32 pid, u64 seconds,
	      struct client_data *ret);

/* Opens a connection on which zerneld pushes a snapshot at this interval. */
int ask_subscribe(const char *socket, u32 interval_ms, struct client **ret);

/* Opens a connection on which zerneld pushes all events, and a snapshot at this interval. */
int ask_record(const char *socket, u32 interval_ms, struct client **ret);
