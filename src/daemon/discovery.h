/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The scans of processes for libraries, in the process `zernel-discover libraries`. A process that
 * is wanted several times before its scan is scanned once. scan_queue.h says in which order.
 */
#include "collect/kernel.h"
#include "collect/library.h"
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
void discovery_set_target(struct discovery *discovery, struct library_set *set,
			  struct kernel *kernel);

void discovery_want(struct discovery *discovery, pid_t pid, enum library_scan_kind kind);
/* Reads the environment of a process that uses a GPU for the first time. */
void discovery_want_numbers(struct discovery *discovery, const struct gpu_event *event);
void discovery_want_all(struct discovery *discovery);
/* Whether the mappings of a process are not known yet. */
bool discovery_is_wanted(const struct discovery *discovery, pid_t pid);

/* Call it often. */
void discovery_tick(struct discovery *discovery, u64 now_ns);

struct discovery_counts discovery_counts(const struct discovery *discovery);
/* Calls `fn` for each user whose scans were refused. */
void discovery_quotas(const struct discovery *discovery, scan_quota_fn fn, void *ctx);
