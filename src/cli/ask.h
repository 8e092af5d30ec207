/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Questions to zerneld. All failures are logged, once, with what to do about them. */
#include "core/snapshot.h"
#include "ipc/client.h"

/* Why zerneld could not be asked, and what to do about it. */
void ask_log_failure(const char *socket, int err);

/* Says hello as well. */
int ask_connect(const char *socket, struct client **ret);

/* The result, for client_data_done(); NULL for `ret` throws it away. */
int ask(struct client *client, const char *method, const char *params, struct client_data *ret);

/* The current snapshot. */
int ask_snapshot(const char *socket, struct snapshot **ret);
/* Prints it as a line of JSON. */
int ask_print_snapshot(const char *socket);

/* A connection on which a snapshot comes that often. */
int ask_subscribe(const char *socket, u32 interval_ms, struct client **ret);

/* A connection on which all that happens is told, and a snapshot that often. */
int ask_record(const char *socket, u32 interval_ms, struct client **ret);
