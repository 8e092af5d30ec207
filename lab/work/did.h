/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "truth/truth.h"
#include "work/times.h"

/*
 * Logs as truth what a thread did, from its first to its last instant and without gaps,
 * with its CPU time and delay in each span. Intersected with the time in which the
 * device was idle, this is the cause of the idle time. Each thread that launches has
 * its own.
 */
struct did {
	struct truth *truth;
	enum truth_did what;
	u64 subject;
	u64 born_ns;
	u64 since_ns;
	int times_fd;
	struct times times; /* at since_ns */
	u64 role_since_ns;  /* 0: its role never changed */
};

/* The calling thread is the thread that is logged, in all calls. */
void did_begin(struct did *did, struct truth *truth, enum truth_did what);

/* From now on it does `what`; `subject` is the batch for TRUTH_DID_DATA, otherwise 0. */
void did_set(struct did *did, enum truth_did what, u64 subject);

/* The thread had this role since its start or the last change. It has another role from now on. */
void did_role_ends(struct did *did, enum truth_role role);

/* The thread waited since `start_ns` for the task with this thread id. */
void did_wait(struct did *did, u64 start_ns, u32 tid);

/*
 * Ends a span that has become long. Called often, it keeps CPU time and delay close to
 * where they happened.
 */
void did_cut(struct did *did);

/* Ends the thread's life and logs it, with the role that it has now. */
void did_end(struct did *did, enum truth_role role);
