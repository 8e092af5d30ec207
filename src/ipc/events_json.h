/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Events of ML processes and their threads, as JSON: {"lost":0,"events":[...]}. Each event
 * is an array of its time, kind, pid, tid and value. Phases and roles are written as names.
 */
#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>
#include "abi/signals.h"

/* A list of events, and the number of events that were dropped. */
struct events {
	u64 nr_lost;
	struct event *list;
	size_t nr;
	size_t capacity;
};

/* Whether events of this kind are sent to clients. */
bool event_is_told(const struct event *event);

/* The caller frees *ret_text. It has a terminating zero that *ret_len does not count. */
int events_to_json(const struct events *events, char **ret_text, size_t *ret_len);

/* Parses untrusted text and appends its events. Skips unknown kinds. -EBADMSG: invalid text. */
int events_from_json(const char *text, size_t len, struct events *events);
/* The same for a parsed value. */
int events_from_value(yyjson_val *root, struct events *events);

int events_add(struct events *events, const struct event *event);
void events_done(struct events *events);
