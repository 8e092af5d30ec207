/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "work/did.h"

#define CHANNEL_ROOM 64

/* How numbers pass from one task to another. */
enum channel_kind {
	CHANNEL_FUTEX, /* shared memory; the reader sleeps on a futex */
	CHANNEL_SPIN,  /* the same, but the reader spins for a bounded time first, as in OpenMP */
	CHANNEL_YIELD, /* shared memory; the reader polls with sched_yield() */
	CHANNEL_PIPE,
	CHANNEL_SOCKET,
};

/* A number and the task that sent it, so that a reader knows who ended its wait. */
struct item {
	u64 number;
	u32 tid;
	u32 is_stop;
};

/* Lies in memory that tasks of several processes share. Any number of readers and writers. */
struct channel {
	u32 kind;
	int fds[2]; /* pipe and socket: the ends for reading and for writing; exec keeps them */
	pthread_mutex_t lock;
	pthread_cond_t filled;
	u32 first, nr;
	struct item items[CHANNEL_ROOM];
};

/* Return 0 or a negative errno. A channel that is full is an error: writers never wait. */
int channel_init(struct channel *channel, enum channel_kind kind);
int channel_put(struct channel *channel, u64 number);
int channel_put_stop(struct channel *channel); /* ends one reader */

void channel_done(struct channel *channel);

/* Returns false at a stop. Logs a wait as `what`, with the task that ended it. */
bool channel_take(struct channel *channel, struct did *did, enum truth_did what, u64 *ret_number);
