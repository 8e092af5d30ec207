/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the scheduler has decided for each class, and how long that let tasks wait. */
#include "abi/sched.h"
#include "core/hist.h"

struct sched_stats {
	struct sched_counters counters;
	struct hist waits[CLASS_SLOTS]; /* for a CPU */
};

/* What the scheduler keeps of each CPU. */
struct sched_cpu {
	u64 nr_turns;
	struct sched_stats stats;
};

/* User space only: each CPU has its own. */
void sched_stats_add(struct sched_stats *to, const struct sched_stats *from);
