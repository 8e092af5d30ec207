/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "abi/types.h"

/*
 * Finished batches on their way from the loaders to the launcher, in order.
 * Batch b goes through slot b % nr_slots and is made by loader b % nr_loaders.
 * A slot is one futex word: 2 g while empty for its g-th batch, 2 g + 1 while
 * full. It lives in shared memory, so loaders may be threads or processes.
 */
struct ring;

struct ring *ring_new(u64 nr_slots);
struct ring *ring_free(struct ring *ring); /* NULL is fine; always returns NULL */

/* Is there room for this batch / is it there? */
bool ring_has_room(struct ring *ring, u64 batch);
bool ring_has_batch(struct ring *ring, u64 batch);

/* Wait once for a change; the caller asks again. timeout_ns 0 waits for ever. */
void ring_wait_room(struct ring *ring, u64 batch);
void ring_wait_batch(struct ring *ring, u64 batch, u64 timeout_ns);

/* Only after the matching question was answered with yes. */
void ring_put(struct ring *ring, u64 batch);
void ring_take(struct ring *ring, u64 batch);

/* Ends all waiting for room; nothing can be put from then on. */
void ring_stop(struct ring *ring);
bool ring_stopped(struct ring *ring);
