/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The process database as text for people and as JSON for programs. */
#include <stdio.h>
#include <yyjson.h>
#include "core/procdb.h"

/* The profiles to show; the database owns them. */
struct procdb_list {
	const struct procdb_profile **profiles;
	size_t nr;
};

/* The confidence of the learned behavior, per mille. */
u32 procdb_text_sure(const struct procdb_profile *profile);

/* Empty when only the name is known. */
void procdb_text_executable(const struct procdb_profile *profile, char text[static 17]);

#define PROCDB_DEFECT_TEXT_MAX 96

/* Writes the problem of a file, for use as the reason in an error message. */
void procdb_text_defect(const struct procdb_report *report, char *text, size_t size);

/* Prints an object with a member `profiles`; -ENOMEM or -EIO. */
int procdb_text_json(FILE *out, const struct procdb_list *list);

/*
 * The same on one line, which the caller frees. The member `next` is the position where the
 * client continues, or null when `next` is 0.
 */
int procdb_text_line(const struct procdb_list *list, size_t next, char **ret, size_t *ret_length);

/* Parses one of these profiles. False: the object is not a profile. */
bool procdb_text_profile(yyjson_val *object, struct procdb_profile *ret);

/* Whether `name` is the name or the executable of this profile. NULL matches all profiles. */
bool procdb_text_is_named(const struct procdb_profile *profile, const char *name);
