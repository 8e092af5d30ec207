/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of jobs in snapshots. zernel-discover finds them; they stay in the job from snapshot to
 * snapshot.
 */
#include "core/snapshot.h"
#include "daemon/discovery.h"

/*
 * Asks for the names of jobs that have none. A job is asked for again at growing intervals, and
 * then no more: a pod may have no log.
 */
void job_names_want(struct snapshot *snapshot, u64 now_ns, struct discovery *discovery);

/* Sets the names of the job that the result is about, if the snapshot has it. */
void job_names_take(struct snapshot *snapshot, const struct job_scan *job);
