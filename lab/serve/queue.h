/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "abi/types.h"

struct request {
	u64 id;
	u64 arrival_ns; /* when it was due, so that the delay of a late generator is included */
	u64 first_token_ns;
	u64 done_ns;
	u64 tokens_left;
};

/* A FIFO of requests between threads, with room for all requests of a run. */
struct queue;

struct queue *queue_new(u64 room);
struct queue *queue_free(struct queue *queue); /* accepts NULL; always returns NULL */

void queue_push(struct queue *queue, struct request *request);
void queue_close(struct queue *queue);

/* Returns NULL when the queue is empty. */
struct request *queue_try_pop(struct queue *queue);

/* Waits for a request; returns NULL when the queue is closed and empty. */
struct request *queue_pop(struct queue *queue);
