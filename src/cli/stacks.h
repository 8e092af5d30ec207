/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Stacks that zerneld sends for an answer, one for each request, and how they are printed. */
#include "answers/lines.h"
#include "cli/term.h"
#include "ipc/client.h"

/* Further stacks are not asked for. zerneld keeps as many of out-of-memory errors. */
#define STACKS_MAX 64

struct stacks {
	struct client *client; /* NULL: not connected yet */
	bool has_failed;       /* zerneld cannot be asked any more */
	struct {
		struct client_data data;
		struct lines *lines;
	} of[STACKS_MAX];
	u32 nr;
};

/*
 * The stack of the reply, which is valid until stacks_done(). NULL: zerneld does not send it,
 * or too many were asked for. After a failed connection, or if zerneld is too old to know the
 * request, no further one is sent. The answer is complete without stacks.
 */
const struct lines_stack *stacks_ask(struct stacks *stacks, const char *socket, const char *method,
				     const char *params);
void stacks_done(struct stacks *stacks);

/* One line for each frame, the innermost one first. */
void stack_print(const struct lines_stack *stack, const struct term *term);
