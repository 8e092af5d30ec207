/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A JSON text whose long lists are parsed in pieces. A parsed value needs two to three times
 * the memory of its text, so a text of 16 MiB is not parsed at once.
 */
#include <stdbool.h>
#include "abi/types.h"
#include "ipc/json.h"

#define JSON_LISTS_MAX 4

struct json_list {
	const char *key;
	char *text; /* what is left of its elements, behind a bracket or comma; NULL: not found */
	char *end;  /* its closing bracket */
	u32 nr;	    /* elements */
};

struct json_parts {
	char *rest; /* the text, in which the lists are empty */
	yyjson_doc *doc;
	struct json_list lists[JSON_LISTS_MAX]; /* the last one has no key */
};

/*
 * Parses a text in place. YYJSON_PADDING_SIZE bytes behind it must exist; they are restored.
 * `keys`, which ends with NULL, names lists of objects at this level; the root is at level 1. The
 * first list with a key counts. The text must exist as long as the parts. -EBADMSG: not JSON.
 */
int json_parts_new(char *text, size_t length, const char *const *keys, u32 level,
		   struct json_parts *ret);
void json_parts_clear(struct json_parts *parts);

/* The list with this key, or NULL if it was not found. */
struct json_list *json_parts_list(struct json_parts *parts, const char *key);

/* An array of the next elements; the caller frees it. 0: there is none left. -EBADMSG: not JSON. */
int json_list_next(struct json_list *list, yyjson_doc **ret);
