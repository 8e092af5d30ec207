/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Stacks of processes, for the dashboard. Reading them costs the process something, so zerneld does
 * it only while clients of the gateway ask: each window is a request to zerneld on a connection of
 * its own, and all clients share its answer. When no client asks any more, the gateway closes the
 * connection, and zerneld ends the sampling.
 */
#include "serve/bodies.h"

struct gateway;
struct lines_watch;

#define LINES_WATCHES_MAX 4
#define LINES_WINDOW_MAX  60 /* in seconds */

/* Zeroed, it has no watch. */
struct lines_watches {
	struct lines_watch *first;
};

/* Why there is no answer: the HTTP status and a text. */
struct lines_refusal {
	u32 status;
	char text[200];
};

/*
 * Returns a reference to the latest answer for a process, and asks for the next one. -EAGAIN: the
 * first answer is not there yet. -EREMOTEIO: *ret_refusal says why there is none.
 */
int lines_get(struct gateway *gateway, u32 pid, u32 seconds, struct body **ret,
	      struct lines_refusal *ret_refusal);
/* Call this before the loop is destroyed, and lines_free_all() after it. */
void lines_stop(struct gateway *gateway);
void lines_free_all(struct gateway *gateway);
