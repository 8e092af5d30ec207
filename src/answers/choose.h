/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the processes that the operand PID|JOB selects. */
#include "core/snapshot.h"

/*
 * Returns the next selected process at or after *at that launches work on a GPU, or NULL, and
 * moves *at behind it. `word` is a pid, the name of a job or its cgroup. The pid of a loader
 * selects its consumer. A NULL `word` selects all processes.
 */
const struct snapshot_process *choose_next(const struct snapshot *snapshot, const char *word,
					   u32 *at);

/* Whether `word` selects this process, which need not launch work. */
bool choose_is_meant(const struct snapshot *snapshot, const struct snapshot_process *process,
		     const char *word);

/* The selected process if the word is a number; otherwise 0. */
u32 choose_pid(const struct snapshot *snapshot, const char *word);

/* "rank 3 (python3 4711)", or without a rank "python3 (4711)". */
struct process_name {
	char text[SNAPSHOT_COMM_LEN + 40];
};
struct process_name choose_name(const struct snapshot_process *process);
