/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/hang/hang_stacks.h"
#include <stdio.h>
#include "base/cleanup.h"
#include "cli/ask.h"

/* Longer than zerneld waits for the process that reads stacks. */
#define WAIT_MS 10000

/* An older zerneld refuses the request. The answer is complete without stacks. */
static void ask_one(struct hang_stacks *stacks, struct client *client, struct hang_member *member)
{
	struct client_data *data = &stacks->of[stacks->nr].data;
	struct lines **lines = &stacks->of[stacks->nr].lines;
	struct client_error error = {};
	char params[64];

	snprintf(params, sizeof(params), "{\"pid\":%u,\"seconds\":0}", member->process->pid);
	if (client_request(client, "lines", params, data, &error) < 0)
		return;
	stacks->nr++;
	if (lines_read(yyjson_obj_get(data->value, "lines"), lines) == 0 && (*lines)->nr_stacks)
		member->stack = (*lines)->stacks;
}

void hang_stacks_ask(struct hang_stacks *stacks, const char *socket, struct hang *hang)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;

	for (u32 i = 0; i < hang->nr_comms; i++) {
		const struct hang_comm *comm = &hang->comms[i];

		for (u32 k = 0; k < comm->nr_members && stacks->nr < HANG_STACKS_MAX; k++) {
			/* The members of a communicator follow each other. */
			struct hang_member *member =
				&hang->members[&comm->members[k] - hang->members];

			if (!hang_is_missing(comm, member))
				continue;
			if (!client && ask_connect(socket, &client) < 0)
				return;
			client_wait_longer(client, WAIT_MS);
			ask_one(stacks, client, member);
		}
	}
}

void hang_stacks_done(struct hang_stacks *stacks)
{
	for (u32 i = 0; i < stacks->nr; i++) {
		lines_free(stacks->of[i].lines);
		client_data_done(&stacks->of[i].data);
	}
}
