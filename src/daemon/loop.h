/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The event loop: one thread waits for all descriptors and calls their handlers. */
#include <sys/epoll.h>
#include "base/macros.h"
#include "core/hist.h"

struct loop;

/* A descriptor in the loop. The caller owns it, and it must exist until it is removed. */
struct loop_source {
	void (*on_event)(void *ctx, u32 events); /* EPOLLIN, EPOLLOUT, ... */
	void *ctx;
	int fd; /* negative while it is not in the loop */
};

int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *loop);
DEFINE_CLEANUP(struct loop, loop_free);

/* The caller keeps the ownership of `fd`. */
int loop_add(struct loop *loop, struct loop_source *source, int fd, u32 events);
int loop_change(struct loop *loop, struct loop_source *source, u32 events);
/* May be called from any event handler. After this call, the source gets no more events. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* Opens a descriptor that becomes readable once per interval. The caller closes it. */
int loop_timer_open(u32 interval_ms, int *ret_fd);
/* The number of intervals that ended since the last call. */
u64 loop_timer_read(int fd);

/* Runs until loop_stop(). */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * The duration of loop iterations, without the time spent waiting for events. A new event waits
 * at most one iteration until its handling begins.
 */
const struct hist *loop_turns(const struct loop *loop);
