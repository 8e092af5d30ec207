/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "abi/sched.h"

/*
 * Reads the topology below `sysfs` (normally "/sys"). Missing cache information,
 * as in many guests, makes one cache of each package. -E2BIG when the machine is
 * larger than MAX_CPUS or MAX_LLCS.
 */
int topology_read(const char *sysfs, u32 nr_cpus, struct topology *ret);
