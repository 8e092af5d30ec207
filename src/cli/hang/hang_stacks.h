/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks zerneld where the launchers of missing ranks are. */
#include "answers/hang.h"
#include "answers/lines.h"
#include "ipc/client.h"

/* A job can have many missing ranks. Those after the first ones are not asked for. */
#define HANG_STACKS_MAX 8

struct hang_stacks {
	struct {
		struct client_data data;
		struct lines *lines;
	} of[HANG_STACKS_MAX];
	u32 nr;
};

/* The answer refers to the stacks. A stack that zerneld does not send stays unknown. */
void hang_stacks_ask(struct hang_stacks *stacks, const char *socket, struct hang *hang);
void hang_stacks_done(struct hang_stacks *stacks);
