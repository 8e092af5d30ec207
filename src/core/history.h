/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ended jobs, with all that explains their idle time. A job ends with its last process.
 *
 * Users can start many short jobs. When there is no room, the user with the most jobs loses its
 * oldest one, so a user with few jobs keeps all of them.
 */
#include "core/snapshot.h"

#define HISTORY_JOBS_MAX      256
/* Processes whose details are kept, of one job and of all jobs. */
#define HISTORY_RANKS_MAX     16
#define HISTORY_PROCESSES_MAX 1024

struct history;

int history_new(struct history **ret);
struct history *history_free(struct history *history);
DEFINE_CLEANUP(struct history, history_free);

/*
 * Notes the processes and jobs that ended between two snapshots. `before` must have their final
 * values. Call it once for each snapshot, after snapshot_carry().
 */
void history_fold(struct history *history, const struct snapshot *before,
		  const struct snapshot *now);

/*
 * Makes a snapshot of ended jobs, newest first, with the time and the host of `now`. `uid` selects
 * the jobs of one user; SNAPSHOT_UID_UNKNOWN: of all users, and the number of jobs that were
 * forgotten (DROP_SNAPSHOT_JOBS). `who`, unless NULL, is the name or the cgroup of a job: then only
 * the newest one, with its processes. -ENOENT: no such job.
 */
int history_show(const struct history *history, const struct snapshot *now, u32 uid,
		 const char *who, struct snapshot **ret);
