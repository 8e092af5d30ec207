/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The inside of the process database, for its own files only.
 *
 * Profiles lie densely in one array, so that a tick is a plain walk; an open
 * addressing index of at most half load finds them by key. Removal moves the
 * last profile into the gap and closes the index chain by shifting back, so
 * there are no tombstones and no rehashing.
 */
#include "core/procdb.h"

struct index_cell {
	u32 hash;
	u32 position; /* of the profile, plus 1; 0 is an empty cell */
};

/* What eviction sorts by, side by side, so that it rarely touches a profile. */
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

/* The position of a key in the normal form, or -1. */
s64 procdb_index_find(const struct procdb *db, const struct procdb_key *key);

/* Adds an empty profile under a key that is not there yet; there must be a free slot. */
struct procdb_profile *procdb_index_add(struct procdb *db, const struct procdb_key *key);

/* Removes a profile; the last one takes its position. */
void procdb_index_remove(struct procdb *db, u32 position);

/* Marks as doomed what was not seen for too long, then what exceeds a user's part or the capacity.
 */
void procdb_doom(struct procdb *db);
