/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The code in which the GPU of some processes is idle, one window of some seconds after another. */
#include <poll.h>
#include <stdbool.h>
#include "abi/lines.h"
#include "ipc/client.h"

/* A shorter recording can end before the first window has. */
#define LINES_WINDOWS_MIN_SECONDS 10

struct lines_windows {
	struct lines_window {
		struct client *client; /* its own: a reply takes as long as a window; NULL: ended */
		u32 pid;
		u64 retry_ns; /* when to ask again; 0: a window is open */
		bool is_warned;
	} of[LINES_OF_USER];
	u32 nr;
};

/* Each of `who` selects a process, as for `zernel why --lines`. The first windows begin. */
int lines_windows_begin(struct lines_windows *windows, const char *socket, const char *const *who,
			u32 nr);

/*
 * Takes a window that has ended, a result of the request `lines`; the next one of its process
 * begins. The caller releases it with client_data_done(). -EAGAIN: no window has ended. Each
 * failure is logged. If another client samples the process, the request is repeated.
 */
int lines_windows_take(struct lines_windows *windows, struct client_data *ret);

/* Fills in `windows->nr` elements for poll(). */
void lines_windows_poll(const struct lines_windows *windows, struct pollfd *ret);
void lines_windows_done(struct lines_windows *windows);
