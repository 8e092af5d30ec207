/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "abi/types.h"

/*
 * Passes finished batches from the loaders to the launcher, in order. Batch b uses
 * slot b % nr_slots and comes from loader b % nr_loaders. A slot is one futex word: 2 g
 * while empty for its g-th batch, 2 g + 1 while full. It is in shared memory, so
 * loaders may be threads or processes.
 */
struct ring;

struct ring *ring_new(u64 nr_slots);
struct ring *ring_free(struct ring *ring); /* accepts NULL; always returns NULL */

/* Is there room for this batch? Is this batch in the ring? */
bool ring_has_room(struct ring *ring, u64 batch);
bool ring_has_batch(struct ring *ring, u64 batch);

/* Wait once for a change; the caller checks again. timeout_ns 0: no timeout. */
void ring_wait_room(struct ring *ring, u64 batch);
void ring_wait_batch(struct ring *ring, u64 batch, u64 timeout_ns);

/* Call these only after the matching check returned true. */
void ring_put(struct ring *ring, u64 batch);
void ring_take(struct ring *ring, u64 batch);

/* Ends all waits for room. No batch can be put after this. */
void ring_stop(struct ring *ring);
bool ring_stopped(struct ring *ring);
