/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The internals of the process database. Only procdb*.c include this file.
 *
 * Profiles are stored densely in one array, so that a tick is a simple loop. An open
 * addressing index with a load of at most one half finds a profile by its key. Removal
 * moves the last profile into the gap and shifts the index cells back, so there are no
 * tombstones and no rehashing.
 */
#include "core/procdb.h"

struct index_cell {
	u32 hash;
	u32 position; /* of the profile, plus 1; 0: empty cell */
};

/* The sort key of eviction. A separate array, so that sorting rarely touches a profile. */
struct rank {
	u64 last_seen_s;
	u32 nr_observations;
	u32 position;
};

struct procdb {
	struct procdb_config config;
	u32 nr_profiles;
	u32 nr_slots;
	u32 index_mask;
	bool ticked;
	u64 now_s;
	u64 nr_dropped;
	struct procdb_profile *profiles;
	struct index_cell *index;
	struct rank *ranks;
};

/* The position of the profile with a normalized key, or -1. */
s64 procdb_index_find(const struct procdb *db, const struct procdb_key *key);

/* Adds an empty profile. The key must be new, and a slot must be free. */
struct procdb_profile *procdb_index_add(struct procdb *db, const struct procdb_key *key);

/* Removes a profile. The last profile moves to its position. */
void procdb_index_remove(struct procdb *db, u32 position);

/* Marks the profiles to evict: unused, above the limit of a user, or above the capacity. */
void procdb_doom(struct procdb *db);
