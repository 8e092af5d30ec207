/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger of one process: for each of its streams, how many operations are queued and how
 * many of them are known to be done. Operations of a stream run in their order, so one number
 * says which are done.
 *
 * A completed sync, a successful query and a blocking copy show that one stream is done up
 * to one position, and nothing about the other streams. There is one exception: a stream
 * that was told to wait for an event and is done beyond that point shows that the stream of
 * the event is done up to the event. An event is a mark: a stream and a position in it.
 *
 * Work that is captured into a graph does not run, so it is not queued. Streams that wait
 * for an event of a capturing stream take part in the capture.
 *
 * Streams beyond the bound share the last slot. Only a sync of the whole device completes it.
 *
 * Several threads may use a ledger at the same time. Counts of queued operations are atomic.
 * A done position that is overwritten by an older one is repaired by the next completion.
 */
#include <stdbool.h>
#include "abi/types.h"

#define LEDGER_STREAMS 16 /* a power of two, so that the verifier can check a masked index */
#define LEDGER_SHARED  (LEDGER_STREAMS - 1)
#define LEDGER_PROBES  6 /* slots that are tried for a stream */
#define LEDGER_WAITS   4 /* other streams that a stream waits for, also a power of two */

/* The legacy default stream has the handle 0 and also 1. Here 0 is an unused slot. */
#define LEDGER_LEGACY	  1
/* The default stream of a thread has the handle 2, in every thread. */
#define LEDGER_PER_THREAD 2

/* A position in a stream: the operations up to it. */
struct ledger_mark {
	u64 position;
	u32 stream;
	u32 is_captured; /* the mark is part of a graph and shows nothing about a stream */
};

struct ledger_wait {
	u64 at; /* the operation that waits; 0: unused */
	struct ledger_mark mark;
};

struct ledger_stream {
	u64 handle;
	u64 nr_queued;
	u64 nr_done;
	u32 is_capturing;
	u32 pad;
	struct ledger_wait waits[LEDGER_WAITS];
};

struct ledger {
	u64 nr_shared; /* operations of streams that share the last slot */
	struct ledger_stream streams[LEDGER_STREAMS];
};

/* Where all streams are at one moment. */
struct ledger_positions {
	u64 of[LEDGER_STREAMS];
};

/* One handle for one stream. The default stream of a thread is a stream of its own. */
static inline u64 ledger_handle(u64 handle, bool per_thread, u32 tid)
{
	if (handle == LEDGER_PER_THREAD || (handle == 0 && per_thread))
		return LEDGER_PER_THREAD | (u64)tid << 32;
	return handle ? handle : LEDGER_LEGACY;
}

static inline struct ledger_stream *ledger_at(struct ledger *ledger, u32 slot)
{
	/* Keeps the compiler from dropping the mask, which the verifier needs. */
	asm volatile("" : "+r"(slot));
	return &ledger->streams[slot & (LEDGER_STREAMS - 1)];
}

static inline bool ledger_stream_is_done(const struct ledger_stream *stream)
{
	return stream->nr_done >= stream->nr_queued;
}

static inline u32 ledger_probe(u64 handle, u32 probe)
{
	/* Handles are addresses, so that their lowest bits are equal. */
	return (u32)((handle * 0x9e3779b97f4a7c15ULL >> 60) + probe) & (LEDGER_STREAMS - 1);
}

/*
 * The slot of a stream, which is assigned at first use. A stream that is done gives up its
 * slot to another one. Positions of a slot only grow, so that a mark of its former stream is
 * done as well. The index comes from a hash and not from the loop: all paths look the same to
 * the verifier then.
 */
static inline u32 ledger_slot(struct ledger *ledger, u64 handle)
{
	for (u32 i = 0; i < LEDGER_PROBES; i++) {
		u32 slot = ledger_probe(handle, i);

		if (ledger_at(ledger, slot)->handle == handle)
			return slot;
	}
	for (u32 i = 0; i < LEDGER_PROBES; i++) {
		u32 slot = ledger_probe(handle, i);
		struct ledger_stream *stream = ledger_at(ledger, slot);

		if (slot == LEDGER_SHARED || !ledger_stream_is_done(stream) || stream->is_capturing)
			continue;
		stream->handle = handle;
		for (u32 k = 0; k < LEDGER_WAITS; k++)
			stream->waits[k].at = 0;
		return slot;
	}
	return LEDGER_SHARED;
}

/* Queues an operation. Gives its position; 0 when it was captured into a graph. */
static inline u64 ledger_queue(struct ledger *ledger, u32 slot)
{
	struct ledger_stream *stream = ledger_at(ledger, slot);

	if (stream->is_capturing)
		return 0;
	if (slot == LEDGER_SHARED)
		__sync_fetch_and_add(&ledger->nr_shared, 1);
	return __sync_fetch_and_add(&stream->nr_queued, 1) + 1;
}

/*
 * A call failed: the operation that it queued does not exist. A mark that another thread made in
 * the meantime may lie beyond the last operation then.
 */
static inline void ledger_unqueue(struct ledger *ledger, u32 slot)
{
	struct ledger_stream *stream = ledger_at(ledger, slot);

	if (!ledger_stream_is_done(stream))
		__sync_fetch_and_sub(&stream->nr_queued, 1);
}

/* The mark of an event that is recorded now. */
static inline struct ledger_mark ledger_mark(struct ledger *ledger, u32 slot)
{
	const struct ledger_stream *stream = ledger_at(ledger, slot);

	return (struct ledger_mark){
		.position = stream->nr_queued,
		.stream = slot,
		.is_captured = stream->is_capturing,
	};
}

/*
 * Operations that are queued from now on run after the mark. The wait is an operation of its
 * own. It replaces an earlier wait for the same stream, which is weaker, or for a stream that
 * happens to have the same place.
 */
static inline void ledger_wait(struct ledger *ledger, u32 slot, const struct ledger_mark *mark)
{
	struct ledger_stream *stream = ledger_at(ledger, slot);
	u64 at;

	if (mark->is_captured) {
		stream->is_capturing = 1;
		return;
	}
	at = ledger_queue(ledger, slot);
	if (at && slot != LEDGER_SHARED)
		stream->waits[mark->stream & (LEDGER_WAITS - 1)] =
			(struct ledger_wait){ at, *mark };
}

static inline void ledger_capture(struct ledger *ledger, u32 slot)
{
	if (slot != LEDGER_SHARED)
		ledger_at(ledger, slot)->is_capturing = 1;
}

/* A capture ends for all streams that took part in it. */
static inline void ledger_capture_end(struct ledger *ledger)
{
	for (u32 i = 0; i < LEDGER_STREAMS; i++)
		ledger->streams[i].is_capturing = 0;
}

static inline void ledger_advance(struct ledger *ledger, const struct ledger_mark *mark)
{
	struct ledger_stream *stream = ledger_at(ledger, mark->stream);

	if (mark->position > stream->nr_done && mark->position <= stream->nr_queued)
		stream->nr_done = mark->position;
}

/* Completes what the waits of one stream show about other streams. */
static inline void ledger_follow(struct ledger *ledger, u32 slot)
{
	const struct ledger_stream *stream = ledger_at(ledger, slot);

	for (u32 i = 0; i < LEDGER_WAITS; i++) {
		const struct ledger_wait *wait = &stream->waits[i];

		if (wait->at && wait->at <= stream->nr_done)
			ledger_advance(ledger, &wait->mark);
	}
}

/* The stream of the mark is done up to the mark. */
static inline void ledger_complete(struct ledger *ledger, const struct ledger_mark *mark)
{
	if (mark->is_captured || mark->stream >= LEDGER_SHARED)
		return;
	ledger_advance(ledger, mark);
	ledger_follow(ledger, mark->stream);
	/* The streams that it waited for may have waited as well. */
	for (u32 i = 0; i < LEDGER_SHARED; i++)
		ledger_follow(ledger, i);
}

static inline void ledger_positions(const struct ledger *ledger, struct ledger_positions *ret)
{
	for (u32 i = 0; i < LEDGER_STREAMS; i++)
		ret->of[i] = ledger->streams[i].nr_queued;
}

/* The whole device is done up to these positions. */
static inline void ledger_complete_all(struct ledger *ledger,
				       const struct ledger_positions *positions)
{
	for (u32 i = 0; i < LEDGER_STREAMS; i++) {
		u64 nr_queued = ledger->streams[i].nr_queued;
		u64 position = positions->of[i] < nr_queued ? positions->of[i] : nr_queued;

		if (position > ledger->streams[i].nr_done)
			ledger->streams[i].nr_done = position;
	}
}

static inline bool ledger_mark_is_done(struct ledger *ledger, const struct ledger_mark *mark)
{
	return mark->is_captured || ledger_at(ledger, mark->stream)->nr_done >= mark->position;
}

/*
 * Everything that was queued is known to be done. A branch for each stream would give the
 * verifier too many paths, and the compiler would make them without the barrier.
 */
static inline bool ledger_is_done(const struct ledger *ledger)
{
	u64 differ = 0;

	for (u32 i = 0; i < LEDGER_STREAMS; i++) {
		differ |= ledger->streams[i].nr_queued ^ ledger->streams[i].nr_done;
		asm volatile("" : "+r"(differ));
	}
	return !differ;
}
