/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Whom a person means by PID|JOB. */
#include "core/snapshot.h"

/*
 * The next process at or after *at that launches work on a GPU and is meant; *at is then
 * behind it. NULL when there is none. `word` is a process (of a loader: whom it feeds), a
 * job's name or its cgroup; NULL means everybody.
 */
const struct snapshot_process *choose_next(const struct snapshot *snapshot, const char *word,
					   u32 *at);

/* The process that is meant where the word is a number; else 0. */
u32 choose_pid(const struct snapshot *snapshot, const char *word);

/* "rank 3 (python3 4711)", or without a rank "python3 (4711)". */
struct process_name {
	char text[SNAPSHOT_COMM_LEN + 40];
};
struct process_name choose_name(const struct snapshot_process *process);
