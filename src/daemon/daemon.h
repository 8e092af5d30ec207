/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* All of zerneld in one place: the parts, what connects them, and the loop they run in. */
#include "base/macros.h"
#include "daemon/options.h"

struct daemon;

/* Opens, loads and attaches. What fails is in the log. `options` must outlive it. */
int daemon_new(const struct options *options, struct daemon **ret);
struct daemon *daemon_free(struct daemon *daemon);
DEFINE_CLEANUP(struct daemon, daemon_free);

/* Until a signal ends it. */
int daemon_run(struct daemon *daemon);
