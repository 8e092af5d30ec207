/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The decisions of the scheduler for each class, and the resulting wait times. */
#include "abi/sched.h"
#include "core/hist.h"

struct sched_stats {
	struct sched_counters counters;
	struct hist waits[CLASS_SLOTS]; /* waits for a CPU */
};

/* The data that the scheduler keeps per CPU. */
struct sched_cpu {
	u64 nr_turns;
	u64 nr_looked; /* tasks that its current walk has looked at */
	struct sched_stats stats;
};

/* User space only: sums the statistics of the CPUs. */
void sched_stats_add(struct sched_stats *to, const struct sched_stats *from);
