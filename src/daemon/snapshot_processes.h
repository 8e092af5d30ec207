/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The part of a snapshot that is about ML processes. Only snapshot_builder.c uses it. */
#include "collect/kernel.h"
#include "core/snapshot.h"

/* All there are; `before` spares looking up again what does not change. */
void processes_fold(struct kernel *kernel, const struct kernel_snapshot *all,
		    const struct snapshot *before, struct snapshot *s);

/* One that ends: what it measured, for the next snapshot to take over. */
void processes_keep(struct kernel *kernel, const struct process_state *process, struct snapshot *s);
