/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/task.h"

double task_phase_fraction(const struct task_state *t, u32 phase)
{
	double total = 0;

	for (u32 i = 0; i < PHASE_NR; i++)
		total += (double)t->phase_ns[i];
	return total > 0 ? (double)t->phase_ns[phase_of(phase)] / total : 0;
}
