/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Watches for CPU limits of cgroups that the scheduler cannot keep. A scan is spread over ticks,
 * so that a large tree of cgroups does not delay the loop.
 */
#include "collect/cpu_limits.h"

struct limits {
	struct cpu_limits_scan *scan; /* NULL between two scans */
	struct cpu_limits found;      /* by the last complete scan */
	u64 scanned_ns;		      /* end of the last complete scan; 0: there was none */
	u64 clear_ns; /* end of the first of the latest scans that found no limit; 0: it found one
		       */
};

void limits_done(struct limits *limits);

/*
 * Scans at once, unless the last scan is recent or the next one is under way. If that takes too
 * long, the result is CPU_LIMIT_UNVERIFIED, and limits_tick() completes the scan.
 */
void limits_look(struct limits *limits, bool honors_cpu_max);
/* Makes the next limits_look() scan. */
void limits_forget(struct limits *limits);

/* Call it at each tick. Returns true when a scan is complete and `found` is new. */
bool limits_tick(struct limits *limits, bool honors_cpu_max);

/* True if no scan of the last `seconds` found a limit. */
bool limits_are_clear(const struct limits *limits, u32 seconds);

/* Describes `found` in a clause that fits into a snapshot. */
void limits_explain(const struct limits *limits, char *ret, size_t size);
