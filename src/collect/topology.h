/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/sched.h"

/*
 * Reads the topology below `sysfs` (normally "/sys"). When cache information is missing, as
 * in many guests, each package is one cache. -E2BIG: the machine has more than MAX_CPUS
 * CPUs or MAX_LLCS caches.
 */
int topology_read(const char *sysfs, u32 nr_cpus, struct topology *ret);
