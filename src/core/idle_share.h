/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * For how long a GPU was idle in a span, and why. The account of a process gives bounds: time
 * in which the GPU certainly had no work, and open time in which it may have had none. A
 * counter of the GPU gives other bounds. Both together give a range, its middle is the
 * estimate, and the idle time that lies in open time is divided by what the launcher did in
 * open time.
 */
#include <stdbool.h>
#include "core/gpu_use.h"

/* If account and counter differ by more than this share of the time, one of them is wrong. */
#define IDLE_SHARE_DISAGREES_PERMILLE 100

/* The account of a process between two snapshots. */
struct idle_span {
	u64 wall_ns;
	u64 busy_ns;
	u64 idle_ns[IDLE_CAUSE_NR];
	u64 open_ns[IDLE_CAUSE_NR];
	u64 blocked_ns; /* the part of open_ns[IDLE_CPU] in which the GPU certainly worked */
};

struct idle_share {
	u64 watched_ns;
	u64 idle_ns; /* the estimate: the sum of the causes */
	u64 min_ns;
	u64 max_ns;
	u64 cause_ns[IDLE_CAUSE_NR];
	u64 launching_ns; /* the part of cause_ns[IDLE_CPU] that was found in open time */
	bool is_measured; /* the counter of the GPU narrowed the range */
	bool disagrees;	  /* the counter contradicts the account; the values are the account's */
	u64 counter_ns;	  /* if it disagrees: the idle time by the counter */
};

/* False if a counter of the process decreased. */
bool idle_span_between(const struct snapshot_process *then, const struct snapshot_process *now,
		       struct idle_span *ret);

/* `use` is NULL if no counter covers the span. */
struct idle_share idle_share_of(const struct idle_span *span, const struct gpu_use_bounds *use);
