/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The part of Zernel's tables that one tenant can use: a user, or a group. A group is a cgroup at
 * most three levels below the root: deeper ones can be made by the tenant itself. Pods of
 * Kubernetes, jobs of Slurm and services of systemd are at these levels.
 */
#include "abi/types.h"

#define TENANT_GROUP_LEVELS 3

/* No user and no group can have more than this part of a table. */
#define TENANT_SHARE(total) ((total) * 3 / 4)

enum tenant_kind {
	TENANT_USER,  /* by user ID; 0 is not capped */
	TENANT_GROUP, /* by the ID of the cgroup; the root cgroup, 0, is not capped */
};

/* The key of the map that counts what each tenant uses. */
struct tenant_key {
	u64 id;
	u32 kind; /* enum tenant_kind */
	u32 pad;
};

/* The tables of the BPF programs. */
enum tenant_table {
	TENANT_PROCESSES,
	TENANT_MEMORY,	  /* GPU memory */
	TENANT_STACKS,	  /* frames of out-of-memory errors */
	TENANT_SEQUENCES, /* collectives of communicators */
	TENANT_KERNELS,	  /* names of GPU kernels */
	TENANT_TABLE_NR,
};

/* How many entries a tenant has, and how often it wanted more than its part. */
struct tenant_use {
	s32 nr[TENANT_TABLE_NR];
	s32 pad;
	u64 nr_refused[TENANT_TABLE_NR];
};
_Static_assert(sizeof(struct tenant_use) == 4 + 12 * TENANT_TABLE_NR, "shared with BPF");
