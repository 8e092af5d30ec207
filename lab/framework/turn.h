/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <pthread.h>
#include <unistd.h>

#include "work/did.h"

/* A counter that one thread advances and another thread waits for. */
struct turn {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	u64 count;
	u32 tid; /* of the thread that advanced it last */
};

#define TURN_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }

static inline void turn_advance(struct turn *turn)
{
	pthread_mutex_lock(&turn->lock);
	turn->count++;
	turn->tid = (u32)gettid();
	pthread_cond_broadcast(&turn->changed);
	pthread_mutex_unlock(&turn->lock);
}

/* Waits until the counter is at least `count`; logs a wait for another thread. */
static inline void turn_wait(struct turn *turn, struct did *did, u64 count)
{
	pthread_mutex_lock(&turn->lock);
	if (turn->count < count) {
		u64 start;

		did_set(did, TRUTH_DID_PEER, 0);
		start = truth_now_ns();
		while (turn->count < count)
			pthread_cond_wait(&turn->changed, &turn->lock);
		did_wait(did, start, turn->tid);
		did_set(did, TRUTH_DID_COMPUTE, 0);
	}
	pthread_mutex_unlock(&turn->lock);
}
