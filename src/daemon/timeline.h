/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What happened last, for those who record it: each reads on from a position of its own.
 * There is room for so much; whoever is too slow loses the oldest and is told how many.
 */
#include "abi/signals.h"
#include "daemon/message.h"

#define TIMELINE_EVENTS 32768

struct timeline {
	struct event *ring; /* only while somebody reads */
	u64 nr_events;	    /* ever; the last of them are in the ring */
	u32 nr_readers;
};

/* Where a new reader begins. */
int timeline_open(struct timeline *timeline, u64 *ret_position);
void timeline_close(struct timeline *timeline);

/* Nobody keeps it while nobody reads. */
void timeline_add(struct timeline *timeline, const struct event *event);

/* All since *position, which moves on, as export/events_json.h has it; NULL when there is nothing.
 */
struct message *timeline_read(const struct timeline *timeline, u64 *position);
