/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What was learned, as zerneld has it in memory while it runs. All failures are logged. */
#include "ipc/client.h"
#include "ipc/procdb_text.h"

/* Those of a name or executable, or all of them; the caller frees both members' memory. */
struct procdb_copies {
	struct procdb_profile *profiles;
	size_t nr;
};
int procdb_client_list(struct client *client, const char *name, struct procdb_copies *ret);

/* Adds to a new database all that is worth being kept. */
int procdb_client_export(struct client *client, struct procdb *into, u64 now_s);

int procdb_client_import(struct client *client, const struct procdb *from, size_t *ret_nr);

/* All of them when `name` is NULL. */
int procdb_client_forget(struct client *client, const char *name, size_t *ret_nr);
