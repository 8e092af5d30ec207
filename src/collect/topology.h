/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include "abi/sched.h"

/* Which last-level cache each CPU is behind, and on which node; caches are numbered from 0. */
struct topology {
	u32 nr_cpus; /* possible CPUs */
	u32 nr_llcs;
	u16 cpu_llc[MAX_CPUS]; /* LLC_UNKNOWN for a CPU that is offline */
	u32 nr_nodes;	       /* that have CPUs, 1 at least */
	u8 cpu_node[MAX_CPUS]; /* the kernel's number plus one; 0 when not known */
};

/*
 * Reads the topology below `sysfs` (normally "/sys"). Missing cache information,
 * as in many guests, makes one cache of each package. -E2BIG when the machine is
 * larger than MAX_CPUS or MAX_LLCS.
 */
int topology_read(const char *sysfs, u32 nr_cpus, struct topology *ret);
