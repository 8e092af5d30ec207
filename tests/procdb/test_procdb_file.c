/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the file: all three versions and the round trip. */
#include "procdb/image.h"

static int ignore_prediction(void *userdata, const struct procdb_key *key,
			     const struct procdb_record *prediction)
{
	return 0;
}

static void assert_same_profile(const struct procdb_profile *a, const struct procdb_profile *b)
{
	assert_non_null(a);
	assert_memory_equal(&a->key, &b->key, sizeof(a->key));
	assert_memory_equal(&a->behaviour, &b->behaviour, sizeof(a->behaviour));
	assert_memory_equal(&a->votes, &b->votes, sizeof(a->votes));
	assert_int_equal(a->nr_observations, b->nr_observations);
	assert_int_equal(a->owner, b->owner);
	assert_int_equal(a->last_seen_s, b->last_seen_s);
}

static void test_version_1_and_2_load(void **state)
{
	for (u32 version = 1; version <= 2; version++) {
		CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
		CLEANUP_IMAGE struct image image = image_old(version, 4);
		const struct procdb_profile *p;

		assert_int_equal(decode(db, &image), PROCDB_FILE_SOUND);
		assert_int_equal(procdb_summarize(db).nr_profiles, 4);
		assert_int_equal(procdb_summarize(db).nr_confident, 4);
		p = find_named(db, "old-0");
		assert_int_equal(p->votes.nr[TIER_BATCH], 2);
		assert_int_equal(p->nr_observations, 100);
		p = find_named(db, "old-3"); /* tier 3 counts as 2; 62 votes are capped */
		assert_int_equal(p->votes.nr[TIER_LAT_CRITICAL], 8);
		assert_int_equal(tier_votes_total(&p->votes), 8);
		assert_int_equal(p->behaviour.runtime_avg_ns, 5003);
		assert_int_equal(p->behaviour.runtime_dev_ns, version == 2 ? 53 : 0);
		assert_int_equal(p->behaviour.wakeup_freq, version == 2 ? 630 : 0);
		assert_int_equal(p->behaviour.switch_rate, version == 2 ? 730 : 0);
		assert_int_equal(p->nr_observations, 103);
		assert_int_equal(p->key.exe_id, 0);
		assert_int_equal(p->last_seen_s, EPOCH_S);
	}
}

/* Bytes after the last entry are ignored, as in the reference. */
static void test_trailing_bytes_of_old_versions(void **state)
{
	for (u32 version = 1; version <= 2; version++) {
		CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
		CLEANUP_IMAGE struct image image = image_old(version, 4);
		struct procdb_report report;

		put_le(image.bytes + 8, 3, 4);
		report = decode_report(db, &image);
		assert_int_equal(report.defect, PROCDB_FILE_TRAILING);
		assert_int_equal(report.version, version);
		assert_int_equal(report.size - report.size_needed, version == 1 ? 40 : 64);
		assert_int_equal(procdb_summarize(db).nr_profiles, 3);
		assert_non_null(find_named(db, "old-2"));
		assert_null(find_named(db, "old-3"));
	}
}

/* An imported profile looks unanimous. Contrary observations must reduce its confidence. */
static void test_imported_confidence_can_fall(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	CLEANUP_IMAGE struct image image = image_old(1, 3);

	assert_int_equal(decode(db, &image), PROCDB_FILE_SOUND);
	merge_times(db, "old-2", 0, 5, EPOCH_S);
	assert_true(procdb_profile_is_confident(find_named(db, "old-2")));
	merge_times(db, "old-2", 0, 1, EPOCH_S);
	assert_false(procdb_profile_is_confident(find_named(db, "old-2")));
}

static void test_every_vote_is_kept(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	CLEANUP_DB struct procdb *loaded = db_make(REFERENCE_CONFIG);
	const struct procdb_profile *p;

	merge_times(db, "mixed", 2, 7, EPOCH_S);
	merge_times(db, "mixed", 1, 2, EPOCH_S);
	merge_times(db, "mixed", 0, 1, EPOCH_S);
	CLEANUP_IMAGE struct image image = image_of(db);
	assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
	p = find_named(loaded, "mixed");
	assert_int_equal(p->votes.nr[TIER_LAT_CRITICAL], 7);
	assert_int_equal(p->votes.nr[TIER_INTERACTIVE], 2);
	assert_int_equal(p->votes.nr[TIER_BATCH], 1);
	assert_int_equal(tier_confidence_permille(&p->votes), 700);
}

/* The reference loses all profiles 61 s after a start. Here, the age continues after a restart. */
static void test_age_survives_a_restart(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
	CLEANUP_DB struct procdb *loaded = db_make(PROCDB_CONFIG_DEFAULT);
	u64 start = EPOCH_S + 13 * DAY_S, now = start;
	struct procdb_report report;

	merge_times(db, "weekly", 0, 3, EPOCH_S);
	CLEANUP_IMAGE struct image image = image_of(db);
	assert_int_equal(procdb_decode(loaded, image.bytes, image.size, start, &report), 0);
	assert_int_equal(find_named(loaded, "weekly")->last_seen_s, EPOCH_S);
	for (; now <= start + 120; now++)
		procdb_tick(loaded, now, ignore_prediction, NULL);
	assert_int_equal(procdb_encoded_size(loaded), image.size);
	for (; now <= EPOCH_S + 14 * DAY_S; now++)
		procdb_tick(loaded, now, ignore_prediction, NULL);
	assert_non_null(find_named(loaded, "weekly"));
	procdb_tick(loaded, now, ignore_prediction, NULL);
	assert_null(find_named(loaded, "weekly"));
}

static void test_age_in_the_future_becomes_now(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	CLEANUP_DB struct procdb *loaded = db_make(REFERENCE_CONFIG);

	merge_times(db, "x", 0, 3, EPOCH_S + 1000 * DAY_S);
	CLEANUP_IMAGE struct image image = image_of(db);
	assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
	assert_int_equal(find_named(loaded, "x")->last_seen_s, EPOCH_S);
}

static void test_only_confident_profiles_are_saved(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	CLEANUP_DB struct procdb *loaded = db_make(REFERENCE_CONFIG);

	merge_times(db, "sure", 0, 3, EPOCH_S);
	merge_times(db, "new", 0, 2, EPOCH_S);
	CLEANUP_IMAGE struct image image = image_of(db);
	assert_int_equal(image.size, 16 + 88);
	assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
	assert_non_null(find_named(loaded, "sure"));
	assert_null(find_named(loaded, "new"));
}

/* CRC-32C of "123456789" is 0xe3069283 by definition. The checksum excludes its own field. */
static void test_checksum_is_crc32c(void **state)
{
	u8 file[] = "123456789\0\0\0????tail-of-many-bytes";
	u8 plain[sizeof(file)];
	u32 crc = ~0U;

	memcpy(plain, file, 12);
	memcpy(plain + 12, file + 16, sizeof(file) - 16);
	for (size_t i = 0; i < sizeof(file) - 4; i++) {
		crc ^= plain[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
		if (i == 8)
			assert_int_equal(~crc, 0xe3069283U);
	}
	assert_int_equal(procdb_file_checksum(file, sizeof(file)), ~crc);
}

/* Checks the layout with a version 3 file written by hand. */
static void test_version_3_layout(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	struct procdb_key key = { .exe_id = 0x1122334455667788, .role = 4, .comm = "trainer" };
	struct procdb_record seen = { .tier = 2, .behaviour = { 1000, 20, 30, 40 } };
	u8 hand[16 + 88] = "PDDB", *at = hand + 16;

	for (int i = 0; i < 3; i++)
		assert_int_equal(procdb_merge(db, &key, 1000, &seen, EPOCH_S), 0);
	put_le(hand + 4, 3, 4);
	put_le(hand + 8, 1, 4);
	put_le(at, key.exe_id, 8);
	memcpy(at + 8, "trainer", 7);
	at[24] = 4;
	put_le(at + 28, 1000, 4);
	put_le(at + 40, 3, 4); /* votes of the third tier */
	put_le(at + 44, 3, 4);
	put_le(at + 48, 1000, 8);
	put_le(at + 56, 20, 8);
	put_le(at + 64, 30, 8);
	put_le(at + 72, 40, 8);
	put_le(at + 80, EPOCH_S, 8);
	put_le(hand + 12, procdb_file_checksum(hand, sizeof(hand)), 4);
	CLEANUP_IMAGE struct image image = image_of(db);
	assert_int_equal(image.size, sizeof(hand));
	assert_memory_equal(image.bytes, hand, sizeof(hand));
}

/* Property: saving, loading and saving again gives the same file. */
static void test_round_trip(void **state)
{
	u64 rng = 0x2545f4914f6cdd1d;

	for (unsigned int round = 0; round < 300; round++) {
		CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
		CLEANUP_DB struct procdb *loaded = db_make(PROCDB_CONFIG_DEFAULT);
		const struct procdb_profile *p;
		size_t nr_confident = 0;

		db_fill_random(db, &rng, random_next(&rng) % 1000, EPOCH_S - 100);
		CLEANUP_IMAGE struct image image = image_of(db);
		assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
		for (size_t i = 0; (p = procdb_at(db, i)); i++) {
			if (!procdb_profile_is_confident(p))
				continue;
			assert_same_profile(procdb_find(loaded, &p->key), p);
			nr_confident++;
		}
		assert_int_equal(procdb_summarize(loaded).nr_profiles, nr_confident);
		CLEANUP_IMAGE struct image again = image_of(loaded);
		assert_int_equal(again.size, image.size);
		assert_memory_equal(again.bytes, image.bytes, image.size);
	}
}

static void test_loading_a_larger_file_keeps_the_most_recent_profiles(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
	struct procdb_config small = { .capacity = 10, .vote_bound = 128, .disuse_s = DAY_S };
	CLEANUP_DB struct procdb *loaded = db_make(small);
	struct procdb_record seen = record_of(1, 1000, 0);

	for (unsigned int i = 0; i < 300; i++)
		for (int n = 0; n < 3; n++) {
			struct procdb_key key = key_numbered(i);

			assert_int_equal(procdb_merge(db, &key, 0, &seen, EPOCH_S - 300 + i), 0);
		}
	CLEANUP_IMAGE struct image image = image_of(db);
	assert_int_equal(decode(loaded, &image), PROCDB_FILE_SOUND);
	procdb_tick(loaded, EPOCH_S, ignore_prediction, NULL);
	assert_int_equal(procdb_summarize(loaded).nr_profiles, 10);
	for (unsigned int i = 290; i < 300; i++) {
		struct procdb_key key = key_numbered(i);

		assert_non_null(procdb_find(loaded, &key));
	}
	/* After the first tick the kernel has predictions, so loading is refused. */
	struct procdb_report report;
	assert_int_equal(procdb_decode(loaded, image.bytes, image.size, EPOCH_S, &report), -EBUSY);
}

static void test_encode_checks_its_buffer(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	u8 small[16 + 87];
	size_t size = 1;

	merge_times(db, "x", 0, 3, EPOCH_S);
	assert_int_equal(procdb_encode(db, small, sizeof(small), &size), -ENOBUFS);
	assert_int_equal(size, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_1_and_2_load),
		cmocka_unit_test(test_trailing_bytes_of_old_versions),
		cmocka_unit_test(test_imported_confidence_can_fall),
		cmocka_unit_test(test_every_vote_is_kept),
		cmocka_unit_test(test_age_survives_a_restart),
		cmocka_unit_test(test_age_in_the_future_becomes_now),
		cmocka_unit_test(test_only_confident_profiles_are_saved),
		cmocka_unit_test(test_checksum_is_crc32c),
		cmocka_unit_test(test_version_3_layout),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_loading_a_larger_file_keeps_the_most_recent_profiles),
		cmocka_unit_test(test_encode_checks_its_buffer),
	};

	return cmocka_run_group_tests_name("procdb file", tests, NULL, NULL);
}
