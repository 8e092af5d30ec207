/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/timeline.h"
#include <errno.h>
#include <stdlib.h>
#include "ipc/events_json.h"

int timeline_open(struct timeline *timeline, u64 *ret_position)
{
	if (!timeline->ring)
		timeline->ring = calloc(TIMELINE_EVENTS, sizeof(*timeline->ring));
	if (!timeline->ring)
		return -ENOMEM;
	timeline->nr_readers++;
	*ret_position = timeline->nr_events;
	return 0;
}

void timeline_close(struct timeline *timeline)
{
	if (--timeline->nr_readers > 0)
		return;
	free(timeline->ring);
	timeline->ring = NULL;
}

void timeline_add(struct timeline *timeline, const struct event *event)
{
	if (timeline->ring && event_is_told(event))
		timeline->ring[timeline->nr_events++ % TIMELINE_EVENTS] = *event;
}

struct message *timeline_read(const struct timeline *timeline, u64 *position)
{
	u64 oldest =
		timeline->nr_events > TIMELINE_EVENTS ? timeline->nr_events - TIMELINE_EVENTS : 0;
	struct events events = {};
	struct message *message = NULL;
	char *text = NULL;
	size_t length;
	int err = 0;

	if (*position == timeline->nr_events)
		return NULL;
	if (*position < oldest) {
		events.nr_lost = oldest - *position;
		*position = oldest;
	}
	for (; err == 0 && *position < timeline->nr_events; ++*position)
		err = events_add(&events, &timeline->ring[*position % TIMELINE_EVENTS]);
	if (err == 0 && events_to_json(&events, &text, &length) == 0)
		message = message_new(text, length);
	events_done(&events);
	return message;
}
