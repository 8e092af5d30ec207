/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "abi/types.h"

struct request {
	u64 id;
	u64 arrival_ns; /* when it was due, so that a late generator hides no waiting */
	u64 first_token_ns;
	u64 done_ns;
	u64 tokens_left;
};

/* Requests between threads, first in, first out, with room for all of a run. */
struct queue;

struct queue *queue_new(u64 room);
struct queue *queue_free(struct queue *queue); /* NULL is fine; always returns NULL */

void queue_push(struct queue *queue, struct request *request);
void queue_close(struct queue *queue);

/* NULL when there is nothing now. */
struct request *queue_try_pop(struct queue *queue);

/* Waits; NULL when the queue is closed and empty. */
struct request *queue_pop(struct queue *queue);
