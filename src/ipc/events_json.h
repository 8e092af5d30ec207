/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What happened to ML processes and their threads, as JSON: {"lost":0,"events":[...]}, each
 * event a list of its time, kind, pid, tid and value. Phases and roles are told by name.
 */
#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>
#include "abi/signals.h"

/* How many were lost, and how many there are. */
struct events {
	u64 nr_lost;
	struct event *list;
	size_t nr;
	size_t capacity;
};

/* Whether it is of a kind that is told. */
bool event_is_told(const struct event *event);

/* The caller frees *ret_text, which ends with a zero that does not count. */
int events_to_json(const struct events *events, char **ret_text, size_t *ret_len);

/* Adds what anybody may have written. -EBADMSG: no such text. Unknown kinds are passed over. */
int events_from_json(const char *text, size_t len, struct events *events);
/* The same of a value that is parsed already. */
int events_from_value(yyjson_val *root, struct events *events);

int events_add(struct events *events, const struct event *event);
void events_done(struct events *events);
