/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/memory/memory_stacks.h"
#include <stdio.h>

void memory_stacks_ask(struct stacks *stacks, const char *socket, struct memory_report *report)
{
	char params[64];

	for (u32 i = 0; i < report->nr_ooms; i++) {
		struct memory_oom *oom = &report->ooms[i];

		snprintf(params, sizeof(params), "{\"pid\":%u,\"time_ns\":%llu}", oom->process->pid,
			 oom->process->oom.time_ns);
		oom->stack = stacks_ask(stacks, socket, "oom.stack", params);
	}
}
