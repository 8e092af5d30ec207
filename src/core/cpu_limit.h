/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPU limits of cgroups that a scheduler cannot keep, and the files of the kernel that show
 * them. All text comes from the kernel, but tenants choose the names in it. A text that is not
 * understood is reported as such: the caller must not take it for "no limit".
 */
#include <stdbool.h>
#include <stddef.h>
#include "abi/types.h"

enum cpu_limit {
	CPU_LIMIT_NONE,
	CPU_LIMIT_CPU_MAX,    /* a cgroup with tasks has a finite cpu.max */
	CPU_LIMIT_CGROUP_V1,  /* a cgroup of version 1 has a finite cpu.cfs_quota_us */
	CPU_LIMIT_UNVERIFIED, /* not all cgroups could be examined */
	CPU_LIMIT_NR,
};

/* Name for output, metrics and files; "unknown" for an invalid value. */
const char *cpu_limit_label(u32 limit);

enum cpu_quota {
	CPU_QUOTA_NONE,
	CPU_QUOTA_FINITE,
	CPU_QUOTA_INVALID,
};

/* cpu.max: "max 100000" or "20000 100000". */
enum cpu_quota cpu_quota_of_max(const char *text);
/* cpu.cfs_quota_us of version 1: -1 or a number. */
enum cpu_quota cpu_quota_of_cfs(const char *text);

/* cgroup.events: false only if the cgroup and its descendants certainly have no tasks. */
bool cgroup_may_have_tasks(const char *events);

/* The mounted hierarchies that can limit CPU time. */
struct cgroup_hierarchies {
	bool v1_cpu; /* version 1 with the controller cpu */
	bool v2;
};

/* /proc/self/cgroup. -EINVAL: a line has another form. */
int cgroup_hierarchies_parse(const char *text, struct cgroup_hierarchies *ret);

#define CGROUP_MOUNT_PATH_LEN 256

struct cgroup_mount {
	bool v1_cpu;   /* else version 2 */
	bool is_whole; /* else the mount shows a part of the hierarchy */
	u32 major;     /* of the device number that its files have */
	u32 minor;
	char path[CGROUP_MOUNT_PATH_LEN];
};

/*
 * One line of /proc/self/mountinfo. -ENOENT: it shows no hierarchy that can limit CPU time.
 * -EINVAL: the line has another form, or its path is too long.
 */
int cgroup_mount_parse(const char *line, struct cgroup_mount *ret);
