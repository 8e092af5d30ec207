/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipc/events_json.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "core/process.h"
#include "ipc/json.h"

/* Values of kinds without labels are written as numbers. */
static const struct kind {
	const char *name; /* NULL: not sent to clients */
	const char *(*label)(u32 value);
	u32 nr;
} kinds[EVENT_NR] = {
	[EVENT_PHASE] = { "phase", phase_label, PHASE_NR },
	[EVENT_ROLE] = { "role", role_label, ROLE_NR },
	[EVENT_STEP] = { "step" },
	[EVENT_EXIT] = { "exit" },
	[EVENT_THREAD_EXIT] = { "thread_exit" },
};

/* The positions in the array of an event. */
enum { AT_TIME, AT_KIND, AT_PID, AT_TID, AT_VALUE, AT_NR };

bool event_is_told(const struct event *event)
{
	return event->kind < EVENT_NR && kinds[event->kind].name;
}

static bool put_event(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct event *event)
{
	const struct kind *kind = &kinds[event->kind];
	yyjson_mut_val *row = yyjson_mut_arr_add_arr(doc, list);

	return yyjson_mut_arr_add_uint(doc, row, event->time_ns) &&
	       yyjson_mut_arr_add_str(doc, row, kind->name) &&
	       yyjson_mut_arr_add_uint(doc, row, event->tgid) &&
	       yyjson_mut_arr_add_uint(doc, row, event->tid) &&
	       (kind->label ? yyjson_mut_arr_add_str(doc, row, kind->label(event->value))
			    : yyjson_mut_arr_add_uint(doc, row, event->value));
}

int events_to_json(const struct events *events, char **ret_text, size_t *ret_len)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text = NULL;
	size_t length;
	bool good;

	yyjson_mut_doc_set_root(doc, root);
	good = yyjson_mut_obj_add_uint(doc, root, "lost", events->nr_lost);
	list = yyjson_mut_obj_add_arr(doc, root, "events");
	for (size_t i = 0; good && i < events->nr; i++)
		if (event_is_told(&events->list[i]))
			good = put_event(doc, list, &events->list[i]);
	if (good)
		text = yyjson_mut_write(doc, 0, &length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	*ret_len = length;
	return 0;
}

static int get_u32(yyjson_val *value, u32 *ret)
{
	if (!yyjson_is_uint(value) || yyjson_get_uint(value) > UINT_MAX)
		return -EBADMSG;
	*ret = (u32)yyjson_get_uint(value);
	return 0;
}

static int get_value(const struct kind *kind, yyjson_val *value, u32 *ret)
{
	if (!kind->label)
		return get_u32(value, ret);
	for (u32 i = 0; i < kind->nr; i++) {
		if (yyjson_equals_str(value, kind->label(i))) {
			*ret = i;
			return 0;
		}
	}
	return -EBADMSG;
}

/* EVENT_NR for an unknown kind. */
static u32 kind_named(yyjson_val *name)
{
	for (u32 i = 0; i < EVENT_NR; i++)
		if (kinds[i].name && yyjson_equals_str(name, kinds[i].name))
			return i;
	return EVENT_NR;
}

static int get_event(yyjson_val *row, struct event *ret)
{
	yyjson_val *time = yyjson_arr_get(row, AT_TIME), *name = yyjson_arr_get(row, AT_KIND);
	struct event event = { .time_ns = yyjson_get_uint(time), .kind = kind_named(name) };
	int err = yyjson_is_uint(time) && yyjson_is_str(name) ? 0 : -EBADMSG;

	if (err < 0)
		return err;
	err = get_u32(yyjson_arr_get(row, AT_PID), &event.tgid);
	if (err < 0)
		return err;
	err = get_u32(yyjson_arr_get(row, AT_TID), &event.tid);
	if (err < 0)
		return err;
	if (event.kind < EVENT_NR)
		err = get_value(&kinds[event.kind], yyjson_arr_get(row, AT_VALUE), &event.value);
	if (err < 0)
		return err;
	*ret = event;
	return 0;
}

int events_from_value(yyjson_val *root, struct events *events)
{
	yyjson_val *lost = yyjson_obj_get(root, "lost");
	yyjson_val *list = yyjson_obj_get(root, "events"), *row;
	int err = yyjson_is_uint(lost) && yyjson_is_arr(list) ? 0 : -EBADMSG;
	size_t i, nr;

	if (err == 0)
		events->nr_lost += yyjson_get_uint(lost);
	yyjson_arr_foreach(list, i, nr, row) {
		struct event event;

		if (err == 0)
			err = get_event(row, &event);
		if (err == 0 && event.kind < EVENT_NR)
			err = events_add(events, &event);
	}
	return err;
}

int events_from_json(const char *text, size_t len, struct events *events)
{
	CLEANUP(yyjson_doc_free_cleanup) yyjson_doc *doc = yyjson_read(text, len, 0);

	return events_from_value(yyjson_doc_get_root(doc), events);
}

int events_add(struct events *events, const struct event *event)
{
	if (events->nr == events->capacity) {
		size_t capacity = events->capacity ? 2 * events->capacity : 256;
		struct event *list = reallocarray(events->list, capacity, sizeof(*list));

		if (!list)
			return -ENOMEM;
		events->list = list;
		events->capacity = capacity;
	}
	events->list[events->nr++] = *event;
	return 0;
}

void events_done(struct events *events)
{
	free(events->list);
	*events = (struct events){};
}
