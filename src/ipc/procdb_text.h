/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Words for people and JSON for programs, of the process database. */
#include <stdio.h>
#include <yyjson.h>
#include "core/procdb.h"

/* The profiles to show; they belong to a database. */
struct procdb_list {
	const struct procdb_profile **profiles;
	size_t nr;
};

/* How sure its behaviour is, per mille. */
u32 procdb_text_sure(const struct procdb_profile *profile);

/* Empty where only the name is known. */
void procdb_text_executable(const struct procdb_profile *profile, char text[static 17]);

#define PROCDB_DEFECT_TEXT_MAX 96

/* What is wrong with a file, as the reason in an error message. */
void procdb_text_defect(const struct procdb_report *report, char *text, size_t size);

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
