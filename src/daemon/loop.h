/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The event loop: one thread waits for all descriptors and calls whoever they belong to. */
#include <sys/epoll.h>
#include "base/macros.h"
#include "core/hist.h"

struct loop;

/* Part of whoever waits, and there until it is removed. */
struct loop_source {
	void (*on_event)(void *ctx, u32 events); /* EPOLLIN and kin */
	void *ctx;
	int fd; /* below 0 while it is not in the loop */
};

int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *loop);
DEFINE_CLEANUP(struct loop, loop_free);

/* The descriptor stays the caller's. */
int loop_add(struct loop *loop, struct loop_source *source, int fd, u32 events);
int loop_change(struct loop *loop, struct loop_source *source, u32 events);
/* Also in the middle of an event, its own or another's: none comes after it. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* A descriptor that becomes readable every so often; the caller's to close. */
int loop_timer_open(u32 interval_ms, int *ret_fd);
/* How often it did since the last call. */
u64 loop_timer_read(int fd);

/* Until loop_stop(). */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * How long turns took, from the moment something was there to the next look: nobody
 * waited longer than that for an answer to begin.
 */
const struct hist *loop_turns(const struct loop *loop);
