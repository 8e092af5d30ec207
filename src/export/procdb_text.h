/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* The process database for people, as a table, and for programs, as JSON. */
#include <stdio.h>
#include <yyjson.h>
#include "core/procdb.h"

/* The profiles to show; they belong to a database. */
struct procdb_list {
	const struct procdb_profile **profiles;
	size_t nr;
};

void procdb_text_table(FILE *out, const struct procdb_list *list, u64 now_s);

/* An object with a member `profiles`; -ENOMEM or -EIO. */
int procdb_text_json(FILE *out, const struct procdb_list *list);

/*
 * The same on one line, to be freed, with a member `next`: where a reader goes on, or
 * null when `next` is 0.
 */
int procdb_text_line(const struct procdb_list *list, size_t next, char **ret, size_t *ret_length);

/* One of those profiles read back; false when it is none. */
bool procdb_text_profile(yyjson_val *object, struct procdb_profile *ret);

/* Whether a name or an executable, as people write it, means this profile; NULL means all. */
bool procdb_text_is_named(const struct procdb_profile *profile, const char *name);
