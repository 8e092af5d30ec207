/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The watches of clients that want the lines of a process: each lasts some seconds and ends with
 * its client. Nothing is sampled without one.
 */
#include "daemon/discovery.h"
#include "daemon/server.h"
#include "daemon/supervisor.h"

#define LINES_SECONDS_MAX 300

struct lines;

/* Both must outlive it. */
int lines_new(struct supervisor *supervisor, struct discovery *discovery, struct lines **ret);
/* No watch may be left. */
struct lines *lines_free(struct lines *lines);
/* Call it ten times a second. */
void lines_tick(struct lines *lines);

/* -ESRCH: the process does not exist for this user, or uses no GPU. `uid` is as below. */
int lines_find_process(struct supervisor *supervisor, u32 uid, int pidfd,
		       struct process_state *ret);
/* Whether the process that was found with this start is still there. */
bool lines_process_lives(struct supervisor *supervisor, int pidfd, u64 start_ns);
void lines_refuse(struct reply *reply, pid_t pid, int err);

/*
 * Begins a watch, or refuses it. `uid`: the user whose processes may be watched, or
 * SNAPSHOT_UID_UNKNOWN for all.
 */
void lines_watch(struct lines *lines, u32 uid, pid_t pid, u64 seconds, struct reply *reply);
