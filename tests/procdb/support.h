/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Helpers for the tests of the process database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/procdb.h"

#define CLEANUP_DB CLEANUP(procdb_free_cleanup)

/* The limits of the reference. The default configuration has a larger capacity and lifetime. */
#define REFERENCE_CONFIG                                                                           \
	((struct procdb_config){ .capacity = 512, .vote_bound = 128, .disuse_s = 60 })

#define DAY_S	86400ULL
#define EPOCH_S 1800000000ULL /* a plausible current time */

static inline struct procdb *db_make(struct procdb_config config)
{
	struct procdb *db = NULL;

	assert_int_equal(procdb_new(&config, &db), 0);
	return db;
}

static inline struct procdb_key key_named(const char *comm)
{
	struct procdb_key key = {};

	snprintf(key.comm, sizeof(key.comm), "%s", comm);
	return key;
}

static inline struct procdb_key key_numbered(unsigned int i)
{
	struct procdb_key key = {};

	snprintf(key.comm, sizeof(key.comm), "task-%06u", i);
	return key;
}

static inline struct procdb_record record_of(u8 tier, u64 average, u64 deviation)
{
	return (struct procdb_record){ .tier = tier,
				       .behaviour = { .runtime_avg_ns = average,
						      .runtime_dev_ns = deviation,
						      .wakeup_freq = 7,
						      .switch_rate = 9 } };
}

static inline void merge_times(struct procdb *db, const char *comm, u8 tier, int times, u64 now_s)
{
	struct procdb_key key = key_named(comm);
	struct procdb_record seen = record_of(tier, 1000, 0);

	for (int i = 0; i < times; i++)
		assert_int_equal(procdb_merge(db, &key, 0, &seen, now_s), 0);
}

static inline const struct procdb_profile *find_named(const struct procdb *db, const char *comm)
{
	struct procdb_key key = key_named(comm);

	return procdb_find(db, &key);
}

/* xorshift64: the same numbers in every run. */
static inline u64 random_next(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Adds many different profiles, from never confident to unanimous, with extreme values. */
static inline void db_fill_random(struct procdb *db, u64 *state, unsigned int nr_merges, u64 now_s)
{
	for (unsigned int i = 0; i < nr_merges; i++) {
		u64 r = random_next(state);
		struct procdb_key key = key_numbered(r % (nr_merges / 6 + 1));
		u64 average = random_next(state) >> (r >> 32) % 60;
		struct procdb_record seen = record_of((r >> 8) % 8 ? 1 : (r >> 12) & 3, average,
						      average >> (r >> 40) % 9);

		if (r >> 20 & 1) {
			key.exe_id = 1 + r % (nr_merges / 6 + 1) * 0x100000001b3ULL;
			key.role = r >> 24 & 3;
		}
		(void)procdb_merge(db, &key, (u32)(r >> 28), &seen, now_s + i % 50);
	}
}
