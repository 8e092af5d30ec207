/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The scans of processes for libraries and names, in the process `zernel-discover libraries`. A
 * process that is wanted several times before its scan is scanned once. scan_queue.h says in which
 * order.
 */
#include "collect/job_scan.h"
#include "collect/kernel.h"
#include "collect/library.h"
#include "collect/library_message.h"
#include "collect/python_scan.h"
#include "daemon/loop.h"
#include "daemon/scan_queue.h"
#include "daemon/starter.h"

struct discovery;

struct discovery_counts {
	u64 nr_restarts;
	u64 nr_lost; /* scans that did not end, or were refused to their owner */
};

int discovery_new(struct starter *starter, struct loop *loop, struct discovery **ret);
struct discovery *discovery_free(struct discovery *discovery);
DEFINE_CLEANUP(struct discovery, discovery_free);

/* What gets the results; NULL: nothing, and nothing is wanted any more. */
void discovery_set_target(struct discovery *discovery, struct library_set *set);

void discovery_want(struct discovery *discovery, pid_t pid, enum library_scan_kind kind);
/* Reads the names of the job of a process, for the function of discovery_set_names(). */
void discovery_want_names(struct discovery *discovery, pid_t pid);
typedef void (*discovery_names_fn)(void *ctx, const struct job_scan *job);
void discovery_set_names(struct discovery *discovery, discovery_names_fn on_names, void *ctx);
/* Finds the interpreter of a process, for the functions of discovery_add_python(). */
void discovery_want_python(struct discovery *discovery, pid_t pid);
/*
 * `pidfd` was opened before the scan, and is closed after the call. `python` is NULL after an
 * error: `err` is as in python_scan(), or -ESRCH if the process has ended.
 */
typedef void (*discovery_python_fn)(void *ctx, pid_t pid, int pidfd, int err,
				    const struct python_scan *python);
#define DISCOVERY_PYTHON_MAX 2
void discovery_add_python(struct discovery *discovery, discovery_python_fn on_python, void *ctx);
/* Reads the stack of a thread, for the functions of discovery_set_stacks(). */
void discovery_want_stack(struct discovery *discovery, pid_t tid);
struct discovery_stack_handler {
	void (*on_frame)(void *ctx, const struct scan_frame *frame);
	void (*on_end)(void *ctx, const struct scan_stacked *end);
};
void discovery_set_stacks(struct discovery *discovery,
			  const struct discovery_stack_handler *handler, void *ctx);
void discovery_want_all(struct discovery *discovery);
/* Whether the mappings of a process are not known yet. */
bool discovery_is_wanted(const struct discovery *discovery, pid_t pid);

/* Call it often. */
void discovery_tick(struct discovery *discovery, u64 now_ns);

struct discovery_counts discovery_counts(const struct discovery *discovery);
/* Calls `fn` for each user whose scans were refused. */
void discovery_quotas(const struct discovery *discovery, scan_quota_fn fn, void *ctx);
