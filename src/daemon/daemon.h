/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The whole zerneld: its parts, their connections, and the loop in which they run. */
#include "base/macros.h"
#include "daemon/options.h"
#include "daemon/starter.h"

struct daemon;

/* Opens, loads and attaches all parts. Logs failures. The arguments must outlive the daemon. */
int daemon_new(const struct options *options, struct starter *starter, struct daemon **ret);
struct daemon *daemon_free(struct daemon *daemon);
DEFINE_CLEANUP(struct daemon, daemon_free);

/* Runs until a signal stops it. */
int daemon_run(struct daemon *daemon);
