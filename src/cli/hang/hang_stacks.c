/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/hang/hang_stacks.h"
#include <stdio.h>

/* Members whose stacks are asked for: zerneld reads each of them now. */
#define MEMBERS_MAX 8

void hang_stacks_ask(struct stacks *stacks, const char *socket, struct hang *hang)
{
	char params[64];

	for (u32 i = 0; i < hang->nr_comms; i++) {
		const struct hang_comm *comm = &hang->comms[i];

		for (u32 k = 0; k < comm->nr_members; k++) {
			/* The members of a communicator follow each other. */
			struct hang_member *member =
				&hang->members[&comm->members[k] - hang->members];

			if (!hang_is_missing(comm, member) || stacks->nr >= MEMBERS_MAX)
				continue;
			snprintf(params, sizeof(params), "{\"pid\":%u,\"seconds\":0}",
				 member->process->pid);
			member->stack = stacks_ask(stacks, socket, "lines", params);
		}
	}
}
