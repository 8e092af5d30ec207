/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The learned profiles in the memory of a running zerneld. All failures are logged. */
#include "ipc/client.h"
#include "ipc/procdb_text.h"

/* Profiles of a task name or executable, or all (`name` is NULL). The caller frees `profiles`. */
struct procdb_copies {
	struct procdb_profile *profiles;
	size_t nr;
};
int procdb_client_list(struct client *client, const char *name, struct procdb_copies *ret);

/* Adds the profiles that zerneld exports to an empty database. */
int procdb_client_export(struct client *client, struct procdb *into, u64 now_s);

int procdb_client_import(struct client *client, const struct procdb *from, size_t *ret_nr);

/* Deletes all profiles if `name` is NULL. */
int procdb_client_forget(struct client *client, const char *name, size_t *ret_nr);
