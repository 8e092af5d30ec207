/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How long the device of a job was idle, and why, by the truth.
 *
 * Other programs on the machine delay threads. The truth has the CPU time and the delays
 * of each span, and the shares are those of the same run without the delays.
 */
#include "truth/dir.h"

struct events {
	struct truth_event *all;
	u64 nr;
};

/* The records of a kind, ordered by their start. The caller frees `all`. */
struct events events_of(const struct truth_dir *dir, enum truth_kind kind);

/* Rank 0 of a run, from its first to its last step. */
struct idle {
	u32 pid;
	u64 start_ns, end_ns, nr_steps;
	u64 idle_ns;
	u64 delay_ns;			/* of the idle time: the machine was busy */
	u64 did_ns[TRUTH_DID_PEER + 1]; /* of the rest, by the thread that ended it */
};

struct idle idle_of_rank0(const struct truth_dir *dir);
double idle_percent(const struct idle *idle);
