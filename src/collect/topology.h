/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/sched.h"

/*
 * Reads the topology below `sysfs` (normally "/sys"). When no cache is described that several
 * cores share, as in many guests and on many arm64 machines, the CPUs of a package on one NUMA
 * node are one cache. -E2BIG: the machine has more than MAX_CPUS CPUs or MAX_LLCS caches.
 */
int topology_read(const char *sysfs, u32 nr_cpus, struct topology *ret);

/*
 * Another number after each time that a CPU went offline or came back. On a kernel without
 * sched_ext, which counts these, it is the same again once the CPU is back.
 */
u64 topology_version(const char *sysfs);
