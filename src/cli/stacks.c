/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/stacks.h"
#include <errno.h>
#include <string.h>
#include "cli/ask.h"

/* Longer than zerneld waits for the process that reads stacks. */
#define WAIT_MS 10000

static bool connect_once(struct stacks *stacks, const char *socket)
{
	if (stacks->client)
		return true;
	if (ask_connect(socket, &stacks->client) < 0)
		return false;
	client_wait_longer(stacks->client, WAIT_MS);
	return true;
}

/* Whether the next request would fail as this one. */
static bool is_final(int err, const struct client_error *error)
{
	return err != -EREMOTEIO || !strcmp(error->code, "unknown-method");
}

const struct lines_stack *stacks_ask(struct stacks *stacks, const char *socket, const char *method,
				     const char *params)
{
	struct client_error error = {};
	struct client_data *data;
	struct lines **lines;
	int err;

	if (stacks->nr == STACKS_MAX || stacks->has_failed)
		return NULL;
	stacks->has_failed = !connect_once(stacks, socket);
	if (stacks->has_failed)
		return NULL;
	data = &stacks->of[stacks->nr].data;
	lines = &stacks->of[stacks->nr].lines;
	err = client_request(stacks->client, method, params, data, &error);
	stacks->has_failed = err < 0 && is_final(err, &error);
	if (err < 0)
		return NULL;
	stacks->nr++;
	if (lines_read(yyjson_obj_get(data->value, "lines"), lines) < 0 || !(*lines)->nr_stacks)
		return NULL;
	return (*lines)->stacks;
}

void stacks_done(struct stacks *stacks)
{
	for (u32 i = 0; i < stacks->nr; i++) {
		lines_free(stacks->of[i].lines);
		client_data_done(&stacks->of[i].data);
	}
	client_free(stacks->client);
}

void stack_print(const struct lines_stack *stack, const struct term *term)
{
	char label[LINES_LABEL_LEN];

	for (u32 i = stack->nr_frames; i > 0; i--) {
		lines_frame_label(&stack->frames[i - 1], label);
		term_print(term, i == stack->nr_frames ? STYLE_WARNING : STYLE_PLAIN, "  %s\n",
			   label);
	}
	if (stack->is_cut)
		term_print(term, STYLE_DIM, "  further calls are cut\n");
}
