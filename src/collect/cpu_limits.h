/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Looks for CPU limits of cgroups that the scheduler cannot keep. Tenants control the tree of
 * cgroups, so a scan has a bound: it examines a limited number of cgroups, to a limited depth,
 * follows no link and enters no other file system. If it could not examine all, its result is
 * CPU_LIMIT_UNVERIFIED and not CPU_LIMIT_NONE.
 */
#include "base/macros.h"
#include "core/cpu_limit.h"

#define CPU_LIMITS_CGROUPS_MAX 16384
#define CPU_LIMITS_DEPTH_MAX   32
#define CPU_LIMITS_PATH_LEN    256

struct cpu_limits_config {
	const char *root;    /* prefix of all paths: "" except in tests */
	bool honors_cpu_max; /* the scheduler keeps cpu.max: only version 1 matters */
	u32 nr_cgroups_max;
};

struct cpu_limits {
	enum cpu_limit limit;
	u32 nr_examined; /* cgroups */
	u32 nr_skipped;	 /* found and not examined; more may be below them or after them */
	/* The cgroup with the limit, or what could not be examined. A long path is truncated. */
	char where[CPU_LIMITS_PATH_LEN];
};

struct cpu_limits_scan;

int cpu_limits_scan_new(const struct cpu_limits_config *config, struct cpu_limits_scan **ret);
struct cpu_limits_scan *cpu_limits_scan_free(struct cpu_limits_scan *scan);
DEFINE_CLEANUP(struct cpu_limits_scan, cpu_limits_scan_free);

/* Examines at most `nr` further cgroups. Returns true at the end of the scan; then *ret is set. */
bool cpu_limits_scan_step(struct cpu_limits_scan *scan, u32 nr, struct cpu_limits *ret);
