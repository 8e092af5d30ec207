/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/procdb_index.h"

#include <string.h>

struct procdb_key procdb_key_normalize(const struct procdb_key *key)
{
	struct procdb_key normal = { .exe_id = key->exe_id };

	for (size_t i = 0; i < COMM_LEN - 1 && key->comm[i]; i++)
		normal.comm[i] = key->comm[i];
	if (key->exe_id)
		normal.role = key->role;
	return normal;
}

/* Both keys must be normalized. If the executable is known, the name is only a label. */
static bool key_equal(const struct procdb_key *a, const struct procdb_key *b)
{
	if (a->exe_id != b->exe_id || a->role != b->role)
		return false;
	return a->exe_id || memcmp(a->comm, b->comm, COMM_LEN) == 0;
}

/* Multiplies and folds, so that every input bit affects the low bits. */
static u64 mix(u64 x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15ULL;
	x ^= x >> 29;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

static u32 key_hash(const struct procdb_key *key)
{
	u64 half[2];

	if (key->exe_id)
		return (u32)mix(mix(key->exe_id) + key->role);
	memcpy(half, key->comm, sizeof(half));
	return (u32)mix(mix(half[0]) ^ half[1]);
}

/* The cell of this key, or the empty cell where it belongs. Half of the cells are empty. */
static u32 cell_of(const struct procdb *db, const struct procdb_key *key, u32 hash)
{
	u32 i = hash & db->index_mask;

	for (;; i = (i + 1) & db->index_mask) {
		const struct index_cell *cell = &db->index[i];

		if (!cell->position)
			return i;
		if (cell->hash == hash && key_equal(key, &db->profiles[cell->position - 1].key))
			return i;
	}
}

static void cell_remove(struct procdb *db, u32 gap)
{
	u32 mask = db->index_mask, i = gap;

	for (;;) {
		u32 home;

		i = (i + 1) & mask;
		if (!db->index[i].position)
			break;
		/* A cell may fill the gap only if its home is not between gap and cell. */
		home = db->index[i].hash & mask;
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		db->index[gap] = db->index[i];
		gap = i;
	}
	db->index[gap] = (struct index_cell){};
}

s64 procdb_index_find(const struct procdb *db, const struct procdb_key *key)
{
	return (s64)db->index[cell_of(db, key, key_hash(key))].position - 1;
}

struct procdb_profile *procdb_index_add(struct procdb *db, const struct procdb_key *key)
{
	struct procdb_profile *p = &db->profiles[db->nr_profiles++];
	u32 hash = key_hash(key);

	db->index[cell_of(db, key, hash)] =
		(struct index_cell){ .hash = hash, .position = db->nr_profiles };
	*p = (struct procdb_profile){ .key = *key };
	return p;
}

void procdb_index_remove(struct procdb *db, u32 position)
{
	struct procdb_profile *p = &db->profiles[position];
	struct procdb_profile *last = &db->profiles[db->nr_profiles - 1];

	cell_remove(db, cell_of(db, &p->key, key_hash(&p->key)));
	if (p != last) {
		db->index[cell_of(db, &last->key, key_hash(&last->key))].position = position + 1;
		*p = *last;
	}
	db->nr_profiles--;
}
