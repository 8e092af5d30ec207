/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The part of a snapshot that is about ML processes. Only snapshot_builder.c uses it. */
#include "collect/kernel.h"
#include "core/snapshot.h"

/* Adds all processes to `s`. Takes unchanging data from `before` instead of reading it again. */
void processes_fold(struct kernel *kernel, const struct kernel_snapshot *all,
		    const struct snapshot *before, struct snapshot *s);

/*
 * Keeps the data of a process that exited at `now_ns`, so that the next snapshot includes it. `s`
 * is older than that.
 */
void processes_keep(struct kernel *kernel, const struct process_state *process, u64 now_ns,
		    struct snapshot *s);
