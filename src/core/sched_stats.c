/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/sched_stats.h"

void sched_stats_add(struct sched_stats *to, const struct sched_stats *from)
{
	for (u32 cls = 0; cls < CLASS_SLOTS; cls++) {
		for (u32 decision = 0; decision < DECISION_NR; decision++)
			to->counters.nr[cls][decision] += from->counters.nr[cls][decision];
		to->counters.ran_ns[cls] += from->counters.ran_ns[cls];
		hist_add(&to->waits[cls], &from->waits[cls]);
	}
}
