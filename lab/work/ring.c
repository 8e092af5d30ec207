/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/ring.h"

#include <stddef.h>
#include <sys/mman.h>

#include "work/process.h"

#define SLOT_STOPPED (~0U)

struct ring_slot {
	u32 word;
} __attribute__((aligned(64)));

struct ring {
	u64 nr_slots;
	struct ring_slot slots[];
};

static size_t ring_bytes(u64 nr_slots)
{
	return sizeof(struct ring) + nr_slots * sizeof(struct ring_slot);
}

struct ring *ring_new(u64 nr_slots)
{
	struct ring *ring = shared_alloc(ring_bytes(nr_slots));

	if (ring)
		ring->nr_slots = nr_slots;
	return ring;
}

struct ring *ring_free(struct ring *ring)
{
	if (ring)
		munmap(ring, ring_bytes(ring->nr_slots));
	return NULL;
}

static u32 *word_of(struct ring *ring, u64 batch)
{
	return &ring->slots[batch % ring->nr_slots].word;
}

static u32 empty_for(const struct ring *ring, u64 batch)
{
	return (u32)(batch / ring->nr_slots * 2);
}

static u32 word_load(struct ring *ring, u64 batch)
{
	return __atomic_load_n(word_of(ring, batch), __ATOMIC_ACQUIRE);
}

bool ring_has_room(struct ring *ring, u64 batch)
{
	return word_load(ring, batch) == empty_for(ring, batch);
}

bool ring_has_batch(struct ring *ring, u64 batch)
{
	return word_load(ring, batch) == empty_for(ring, batch) + 1;
}

void ring_wait_room(struct ring *ring, u64 batch)
{
	/* Waits while the slot is full with the batch of the previous round. */
	futex_wait(word_of(ring, batch), empty_for(ring, batch) - 1, 0);
}

void ring_wait_batch(struct ring *ring, u64 batch, u64 timeout_ns)
{
	futex_wait(word_of(ring, batch), empty_for(ring, batch), timeout_ns);
}

/* Does not change a slot that ring_stop() stopped meanwhile. */
static void word_advance(struct ring *ring, u64 batch, u32 from)
{
	u32 *word = word_of(ring, batch);

	if (__atomic_compare_exchange_n(word, &from, from + 1, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		futex_wake_all(word);
}

void ring_put(struct ring *ring, u64 batch)
{
	word_advance(ring, batch, empty_for(ring, batch));
}

void ring_take(struct ring *ring, u64 batch)
{
	word_advance(ring, batch, empty_for(ring, batch) + 1);
}

void ring_stop(struct ring *ring)
{
	for (u64 i = 0; i < ring->nr_slots; i++) {
		__atomic_store_n(&ring->slots[i].word, SLOT_STOPPED, __ATOMIC_RELEASE);
		futex_wake_all(&ring->slots[i].word);
	}
}

bool ring_stopped(struct ring *ring)
{
	return word_load(ring, 0) == SLOT_STOPPED;
}
