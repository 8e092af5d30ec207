/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The connection to zerneld. Subscribes to snapshots and reconnects after a failure. Never
 * blocks.
 */
#include <stdbool.h>
#include "core/snapshot.h"

struct gateway;
struct upstream;

int upstream_new(struct gateway *gateway, struct upstream **ret);
/* Call this before the loop is destroyed, and upstream_free() after it. */
void upstream_stop(struct upstream *upstream);
struct upstream *upstream_free(struct upstream *upstream);

/* NULL when connected and the latest snapshot is fresh; otherwise the problem. */
const char *upstream_defect(const struct upstream *upstream);
/* Asks for an ended job, by its name or cgroup, unless a request is open. Fills gateway->ended. */
void upstream_ask_life(struct upstream *upstream, const char *who);
u32 upstream_interval_ms(const struct upstream *upstream);
