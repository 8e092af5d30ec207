/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* The process database for people, as a table, and for programs, as JSON. */
#include <stdio.h>
#include "core/procdb.h"

/* The profiles to show; they belong to a database. */
struct procdb_list {
	const struct procdb_profile **profiles;
	size_t nr;
};

void procdb_text_table(FILE *out, const struct procdb_list *list, u64 now_s);

/* An object with a member `profiles`; -ENOMEM or -EIO. */
int procdb_text_json(FILE *out, const struct procdb_list *list);
