/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Loads random bytes as a database file: first unchanged, then with a corrected checksum, which a
 * fuzzer cannot guess. A database that loads must survive ticks. When it is saved and loaded
 * again, it must be the same.
 */
#include <string.h>

#include "core/procdb.h"
#include "fuzz/fuzz.h"

#define NOW_S	    1800000000ULL
#define CHECKSUM_AT 12
#define ROOM_BYTES  (1 << 16)

/* Small, so that it fills soon and its allocation does not dominate the run time. */
static const struct procdb_config config = { .capacity = 8, .vote_bound = 16, .disuse_s = 60 };

static int count_predictions(void *userdata, const struct procdb_key *key,
			     const struct procdb_record *prediction)
{
	int *nr = userdata;

	REQUIRE(!prediction || prediction->tier < TIER_NR);
	*nr += prediction ? 1 : -1;
	return 0;
}

static void check_saved_loads(const struct procdb *db)
{
	static uint8_t file[ROOM_BYTES], again[ROOM_BYTES];
	size_t size = 0, size_again = 0;
	struct procdb_report report;
	struct procdb *loaded = NULL;

	REQUIRE(procdb_encode(db, file, sizeof(file), &size) == 0);
	REQUIRE(procdb_new(&config, &loaded) == 0);
	REQUIRE(procdb_decode(loaded, file, size, NOW_S, &report) == 0);
	REQUIRE(report.defect == PROCDB_FILE_SOUND);
	REQUIRE(procdb_encode(loaded, again, sizeof(again), &size_again) == 0);
	REQUIRE(size == size_again && memcmp(file, again, size) == 0);
	procdb_free(loaded);
}

/* The export for the reference must load, with every name once. */
static void check_exported_loads(const struct procdb *db)
{
	struct procdb *loaded = NULL;
	struct procdb_report report;
	void *file = NULL;
	size_t size = 0, nr = 0;

	REQUIRE(procdb_encode_v2(db, &file, &size, &nr) == 0);
	REQUIRE(procdb_new(&config, &loaded) == 0);
	REQUIRE(procdb_decode(loaded, file, size, NOW_S, &report) == 0);
	REQUIRE(report.defect == PROCDB_FILE_SOUND && report.version == 2);
	REQUIRE(procdb_summarize(loaded).nr_profiles == nr);
	REQUIRE(nr <= procdb_summarize(db).nr_confident);
	procdb_free(loaded);
	free(file);
}

static void check_loaded(struct procdb *db, size_t size)
{
	int nr_predictions = 0;

	REQUIRE(procdb_tick(db, NOW_S, count_predictions, &nr_predictions) == 0);
	REQUIRE(procdb_summarize(db).nr_profiles <= config.capacity);
	REQUIRE(procdb_summarize(db).nr_confident == (size_t)nr_predictions);
	check_saved_loads(db);
	check_exported_loads(db);
	for (const struct procdb_profile *p; (p = procdb_at(db, 0));) {
		struct procdb_record seen = { .tier = (u8)size, .behaviour = p->behaviour };
		struct procdb_key key = p->key;

		REQUIRE(procdb_merge(db, &key, 0, &seen, NOW_S) == 0);
		REQUIRE(procdb_find(db, &key) == p);
		REQUIRE(procdb_tick(db, NOW_S + 61, count_predictions, &nr_predictions) == 0);
	}
	REQUIRE(nr_predictions == 0);
}

static enum procdb_defect check_file(const uint8_t *data, size_t size)
{
	struct procdb *db = NULL;
	struct procdb_report report;

	REQUIRE(procdb_new(&config, &db) == 0);
	if (procdb_decode(db, data, size, NOW_S, &report) == 0)
		check_loaded(db, size);
	else
		REQUIRE(procdb_summarize(db).nr_profiles == 0 &&
			report.defect != PROCDB_FILE_SOUND);
	procdb_free(db);
	return report.defect;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *fixed;
	u32 crc;

	if (check_file(data, size) != PROCDB_FILE_BAD_CHECKSUM)
		return 0;
	/* Exactly as large as the input, so that sanitizers detect a read past the end. */
	fixed = malloc(size);
	REQUIRE(fixed);
	memcpy(fixed, data, size);
	crc = procdb_file_checksum(fixed, size);
	for (int i = 0; i < 4; i++)
		fixed[CHECKSUM_AT + i] = (uint8_t)(crc >> 8 * i);
	check_file(fixed, size);
	free(fixed);
	return 0;
}
