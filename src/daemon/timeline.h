/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A ring of the latest events for recordings. Each reader has its own position. A reader that
 * is too slow loses the oldest events and gets the number of lost events.
 */
#include "abi/signals.h"
#include "daemon/message.h"

#define TIMELINE_EVENTS 32768

struct timeline {
	struct event *ring; /* allocated only while readers exist */
	u64 nr_events;	    /* total; the ring contains the latest ones */
	u32 nr_readers;
};

/* Adds a reader. *ret_position is its first position. */
int timeline_open(struct timeline *timeline, u64 *ret_position);
void timeline_close(struct timeline *timeline);

/* Does nothing while there are no readers. */
void timeline_add(struct timeline *timeline, const struct event *event);

/*
 * Returns the events since *position as JSON (see ipc/events_json.h) and advances *position.
 * Returns NULL if there are no new events.
 */
struct message *timeline_read(const struct timeline *timeline, u64 *position);
