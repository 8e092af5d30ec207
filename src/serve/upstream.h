/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The connection to zerneld: subscribes, keeps the snapshots coming, and comes back when
 * zerneld does. Never waits for it.
 */
#include <stdbool.h>
#include "core/snapshot.h"

struct gateway;
struct upstream;

int upstream_new(struct gateway *gateway, struct upstream **ret);
/* Before the loop is taken down; upstream_free() after that. */
void upstream_stop(struct upstream *upstream);
struct upstream *upstream_free(struct upstream *upstream);

/* NULL when all is well: connected, and the latest snapshot is fresh. Else what is wrong. */
const char *upstream_defect(const struct upstream *upstream);
u32 upstream_interval_ms(const struct upstream *upstream);
