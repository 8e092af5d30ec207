/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the export for the reference: layout, selection of profiles, and unit of rates. */
#include "base/macros.h"
#include "procdb/image.h"

static struct image image_v2(const struct procdb *db)
{
	struct image image = {};
	void *bytes = NULL;
	size_t nr = 0;

	assert_int_equal(procdb_encode_v2(db, &bytes, &image.size, &nr), 0);
	assert_int_equal(image.size, 12 + 64 * nr);
	image.bytes = bytes;
	return image;
}

static void observe(struct procdb *db, const char *comm, u64 exe_id, u8 tier, int times)
{
	struct procdb_record seen = {
		.tier = tier,
		.behaviour = { 1000 * exe_id + 1000, 20, 300, 440 },
	};
	struct procdb_key key = key_named(comm);

	key.exe_id = exe_id;
	for (int i = 0; i < times; i++)
		assert_int_equal(procdb_merge(db, &key, 1000, &seen, EPOCH_S), 0);
}

/* Checks the layout with a file written by hand from the description of the format. */
static void test_layout(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	u8 hand[12 + 64] = "PDDB", *at = hand + 12;

	observe(db, "trainer", 7, TIER_LAT_CRITICAL, 4);
	observe(db, "trainer", 7, TIER_BATCH, 1);
	put_le(hand + 4, 2, 4);
	put_le(hand + 8, 1, 4);
	memcpy(at, "trainer", 7);
	at[16] = TIER_LAT_CRITICAL;
	put_le(at + 24, 8000, 8);
	put_le(at + 32, 20, 8);
	put_le(at + 40, 30, 8);
	put_le(at + 48, 44, 8);
	put_le(at + 56, 5, 4);
	put_le(at + 60, 5, 4);
	CLEANUP_IMAGE struct image image = image_v2(db);
	assert_int_equal(image.size, sizeof(hand));
	assert_memory_equal(image.bytes, hand, sizeof(hand));
}

static void test_export_has_one_confident_profile_per_name(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	CLEANUP_DB struct procdb *loaded = db_make(REFERENCE_CONFIG);
	const struct procdb_profile *p;

	observe(db, "cc1", 1, TIER_BATCH, 3);
	observe(db, "cc1", 2, TIER_INTERACTIVE, 9);
	observe(db, "cc1", 3, TIER_BATCH, 4);
	observe(db, "new", 4, TIER_BATCH, 2);
	for (u8 tier = 0; tier < TIER_NR; tier++)
		observe(db, "mixed", 5, tier, 3);
	observe(db, "as", 6, TIER_BATCH, 3);
	CLEANUP_IMAGE struct image image = image_v2(db);
	assert_int_equal(image.size, 12 + 2 * 64);
	assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
	p = find_named(loaded, "cc1");
	assert_int_equal(tier_dominant(&p->votes), TIER_INTERACTIVE);
	assert_int_equal(p->nr_observations, 9);
	assert_int_equal(p->behaviour.runtime_avg_ns, 3000);
	assert_non_null(find_named(loaded, "as"));
}

/* Events per second become events per 100 ms, rounded and limited as in the reference. */
static void test_rates_have_the_unit_of_the_reference(void **state)
{
	static const struct {
		u64 per_s, wakeups, switches;
	} rows[] = {
		{ 0, 0, 0 },	   { 4, 0, 0 },		 { 5, 1, 1 },	     { 14, 1, 1 },
		{ 15, 2, 2 },	   { 300, 30, 30 },	 { 640, 64, 64 },    { 645, 64, 65 },
		{ 5120, 64, 512 }, { 1000000, 64, 512 }, { ~0ULL, 64, 512 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
		CLEANUP_DB struct procdb *loaded = db_make(REFERENCE_CONFIG);
		struct procdb_profile p = { .key = key_named("x"),
					    .votes.nr = { 3 },
					    .nr_observations = 3,
					    .behaviour = { 1000, 0, rows[i].per_s,
							   rows[i].per_s } };
		u8 expected[16];

		assert_int_equal(procdb_restore(db, &p, EPOCH_S), 0);
		CLEANUP_IMAGE struct image image = image_v2(db);
		put_le(expected, rows[i].wakeups, 8);
		put_le(expected + 8, rows[i].switches, 8);
		assert_memory_equal(image.bytes + 12 + 40, expected, sizeof(expected));
		assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
		assert_int_equal(find_named(loaded, "x")->behaviour.wakeup_freq,
				 10 * rows[i].wakeups);
		assert_int_equal(find_named(loaded, "x")->behaviour.switch_rate,
				 10 * rows[i].switches);
	}
}

/* Impossibly large rates in a file must not wrap around to small rates. */
static void test_huge_rates_saturate(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	CLEANUP_IMAGE struct image image = image_old(2, 1);

	put_le(image.bytes + 12 + 40, ~0ULL / 10 + 1, 8);
	assert_int_equal(decode(db, &image), PROCDB_FILE_SOUND);
	assert_true(find_named(db, "old-0")->behaviour.wakeup_freq == ~0ULL);
	assert_int_equal(find_named(db, "old-0")->behaviour.switch_rate, 700);
}

/*
 * Property: an export of any database can be loaded. Exporting it again changes only the votes,
 * because an import keeps only a few of them.
 */
static void test_round_trip(void **state)
{
	u64 rng = 0x2545f4914f6cdd1d;

	for (unsigned int round = 0; round < 100; round++) {
		CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
		CLEANUP_DB struct procdb *loaded = db_make(PROCDB_CONFIG_DEFAULT);

		db_fill_random(db, &rng, random_next(&rng) % 1000, EPOCH_S - 100);
		CLEANUP_IMAGE struct image image = image_v2(db);
		assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
		CLEANUP_IMAGE struct image again = image_v2(loaded);
		assert_int_equal(again.size, image.size);
		for (size_t at = 12; at < image.size; at += 64)
			assert_memory_equal(again.bytes + at, image.bytes + at, 60);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_export_has_one_confident_profile_per_name),
		cmocka_unit_test(test_rates_have_the_unit_of_the_reference),
		cmocka_unit_test(test_huge_rates_saturate),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests_name("procdb v2", tests, NULL, NULL);
}
