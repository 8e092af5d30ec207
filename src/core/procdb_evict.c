/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Eviction: unused profiles, profiles above the limit of a user, the oldest above the capacity. */
#include <string.h>

#include "core/procdb_index.h"

#define ROOT_UID 0

/* At most twice the capacity is stored, which is eight times the limit of one user. */
#define NR_CANDIDATES (2 * PROCDB_USER_PARTS)

/* The eviction order: last seen, observations, name, then the rest of the key. */
static bool rank_less(const struct procdb *db, const struct rank *a, const struct rank *b)
{
	const struct procdb_key *ka, *kb;
	int order;

	if (a->last_seen_s != b->last_seen_s)
		return a->last_seen_s < b->last_seen_s;
	if (a->nr_observations != b->nr_observations)
		return a->nr_observations < b->nr_observations;
	ka = &db->profiles[a->position].key;
	kb = &db->profiles[b->position].key;
	order = memcmp(ka->comm, kb->comm, COMM_LEN);
	if (order != 0)
		return order < 0;
	if (ka->exe_id != kb->exe_id)
		return ka->exe_id < kb->exe_id;
	return ka->role < kb->role;
}

static void heap_sift_down(const struct procdb *db, u32 i, u32 n)
{
	struct rank *heap = db->ranks, moving = heap[i];

	for (;;) {
		u32 child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && rank_less(db, &heap[child + 1], &heap[child]))
			child++;
		if (!rank_less(db, &heap[child], &moving))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moving;
}

/* Marks the `excess` smallest of the first n ranks. Uses a heap, as `excess` is usually small. */
static void doom_smallest(struct procdb *db, u32 n, u32 excess)
{
	for (u32 i = n / 2; i-- > 0;)
		heap_sift_down(db, i, n);
	while (excess-- > 0) {
		db->profiles[db->ranks[0].position].doomed = true;
		db->ranks[0] = db->ranks[--n];
		heap_sift_down(db, 0, n);
	}
}

/* A user who may own many profiles. The count is a lower bound. */
struct candidate {
	u32 owner;
	u32 nr;
};

/*
 * Counts one profile for its owner (the algorithm of Misra and Gries). If the owner is not a
 * candidate and no place is free, every candidate loses one count instead. In the end, each
 * user who owns more than one ninth of the counted profiles is a candidate.
 */
static void candidate_count(struct candidate *candidates, u32 owner)
{
	struct candidate *free_place = NULL;

	for (u32 i = 0; i < NR_CANDIDATES; i++) {
		if (candidates[i].nr && candidates[i].owner == owner) {
			candidates[i].nr++;
			return;
		}
		if (!candidates[i].nr)
			free_place = &candidates[i];
	}
	if (free_place) {
		*free_place = (struct candidate){ owner, 1 };
		return;
	}
	for (u32 i = 0; i < NR_CANDIDATES; i++)
		candidates[i].nr--;
}

/* Marks the oldest profiles of a user who is above the limit. */
static void doom_excess_of(struct procdb *db, u32 owner, u32 limit)
{
	u32 n = 0;

	for (u32 i = 0; i < db->nr_profiles; i++) {
		const struct procdb_profile *p = &db->profiles[i];

		if (!p->doomed && p->owner == owner)
			db->ranks[n++] = (struct rank){ p->last_seen_s, p->nr_observations, i };
	}
	if (n > limit)
		doom_smallest(db, n, n - limit);
}

static void doom_excess_of_users(struct procdb *db)
{
	struct candidate candidates[NR_CANDIDATES] = {};
	u32 limit = db->config.capacity / PROCDB_USER_PARTS;

	if (db->nr_profiles <= limit)
		return;
	for (u32 i = 0; i < db->nr_profiles; i++)
		if (!db->profiles[i].doomed && db->profiles[i].owner != ROOT_UID)
			candidate_count(candidates, db->profiles[i].owner);
	for (u32 i = 0; i < NR_CANDIDATES; i++)
		if (candidates[i].nr)
			doom_excess_of(db, candidates[i].owner, limit > 0 ? limit : 1);
}

void procdb_doom(struct procdb *db)
{
	u32 n = 0;

	for (u32 i = 0; i < db->nr_profiles; i++) {
		struct procdb_profile *p = &db->profiles[i];

		p->doomed = db->now_s - p->last_seen_s > db->config.disuse_s;
	}
	doom_excess_of_users(db);
	for (u32 i = 0; i < db->nr_profiles; i++) {
		const struct procdb_profile *p = &db->profiles[i];

		if (!p->doomed)
			db->ranks[n++] = (struct rank){ p->last_seen_s, p->nr_observations, i };
	}
	if (n > db->config.capacity)
		doom_smallest(db, n, n - db->config.capacity);
}
