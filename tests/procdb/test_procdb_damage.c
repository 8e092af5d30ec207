/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests damaged files. They must never cause a crash or, in version 3, a wrong profile. */
#include "base/macros.h"
#include "ipc/procdb_text.h"
#include "procdb/image.h"

static struct procdb_report decode_fresh(const struct image *image)
{
	struct procdb_config small = { .capacity = 16, .vote_bound = 128, .disuse_s = 60 };
	CLEANUP_DB struct procdb *db = db_make(small);

	return decode_report(db, image);
}

static void test_defects_are_distinguished(void **state)
{
	CLEANUP_IMAGE struct image v2 = image_old(2, 2);
	static const struct {
		size_t offset;
		u8 value;
		size_t size;
		enum procdb_defect defect;
	} rows[] = {
		{ 0, 'P', 0, PROCDB_FILE_TOO_SHORT },	{ 0, 'P', 11, PROCDB_FILE_TOO_SHORT },
		{ 0, 'p', 140, PROCDB_FILE_BAD_MAGIC }, { 4, 0, 140, PROCDB_FILE_BAD_VERSION },
		{ 4, 4, 140, PROCDB_FILE_BAD_VERSION }, { 7, 1, 140, PROCDB_FILE_BAD_VERSION },
		{ 0, 'P', 139, PROCDB_FILE_TRUNCATED }, { 0, 'P', 12, PROCDB_FILE_TRUNCATED },
		{ 8, 3, 140, PROCDB_FILE_TRUNCATED },	{ 11, 255, 140, PROCDB_FILE_TRUNCATED },
		{ 8, 1, 140, PROCDB_FILE_TRAILING },	{ 0, 'P', 140, PROCDB_FILE_SOUND },
	};

	assert_int_equal(v2.size, 140);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP_IMAGE struct image bad = image_copy(v2.bytes, rows[i].size);

		if (rows[i].offset < bad.size)
			bad.bytes[rows[i].offset] = rows[i].value;
		assert_int_equal(decode_fresh(&bad).defect, rows[i].defect);
	}
}

/* The log quotes these texts. They must contain size, magic, version and missing bytes. */
static void test_descriptions_of_defects(void **state)
{
	CLEANUP_IMAGE struct image v2 = image_old(2, 2);
	static const struct {
		size_t offset;
		u8 value;
		size_t size;
		const char *words;
	} rows[] = {
		{ 0, 'P', 140, "the file is valid" },
		{ 0, 'P', 7, "7 bytes are too few: the header has 12" },
		{ 0, 'p', 140, "the first four bytes are 70 44 44 42, not PDDB" },
		{ 4, 9, 140, "version 9 is unknown, versions 1 to 3 are known" },
		{ 0, 'P', 100, "40 of 140 bytes are missing (2 entries of version 2)" },
		{ 8, 1, 140, "64 bytes follow the last of 1 entries of version 2" },
		{ 11, 255, 140,
		  "273804165120 of 273804165260 bytes are missing (4278190082 entries of version "
		  "2)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
		CLEANUP_IMAGE struct image bad = image_copy(v2.bytes, rows[i].size);
		char text[PROCDB_DEFECT_TEXT_MAX];
		struct procdb_report report;

		bad.bytes[rows[i].offset] = rows[i].value;
		report = decode_report(db, &bad);
		procdb_text_defect(&report, text, sizeof(text));
		assert_string_equal(text, rows[i].words);
	}
}

/* Old versions have no checksum. A version 3 file must not be mistaken for an old version. */
static void test_damaged_version_field_of_version_3(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);
	char text[PROCDB_DEFECT_TEXT_MAX];
	struct procdb_report report;

	merge_times(db, "name", 0, 3, EPOCH_S);
	CLEANUP_IMAGE struct image image = image_of(db);
	image.bytes[4] = 2;
	CLEANUP_DB struct procdb *loaded = db_make(REFERENCE_CONFIG);
	report = decode_report(loaded, &image);
	assert_int_equal(report.defect, PROCDB_FILE_FALSE_VERSION);
	procdb_text_defect(&report, text, sizeof(text));
	assert_string_equal(text, "the header says version 2, the checksum says version 3");
}

/* The checksum is correct, but Zernel never writes such an entry. */
static void test_impossible_entry(void **state)
{
	static const u8 offsets[] = { 16 + 8 + 15, 16 + 8 + 6, 16 + 24, 16 + 25, 16 + 27 };
	CLEANUP_DB struct procdb *db = db_make(REFERENCE_CONFIG);

	merge_times(db, "name", 0, 3, EPOCH_S);
	CLEANUP_IMAGE struct image image = image_of(db);
	for (size_t i = 0; i < sizeof(offsets); i++) {
		CLEANUP_IMAGE struct image bad = image_copy(image.bytes, image.size);

		bad.bytes[offsets[i]] = 'x';
		put_le(bad.bytes + 12, procdb_file_checksum(bad.bytes, bad.size), 4);
		assert_int_equal(decode_fresh(&bad).defect, PROCDB_FILE_BAD_ENTRY);
	}
}

static struct image image_version(u32 version)
{
	CLEANUP_DB struct procdb *db = NULL;
	u64 rng = 42;

	if (version < 3)
		return image_old(version, 4);
	db = db_make(REFERENCE_CONFIG);
	db_fill_random(db, &rng, 24, EPOCH_S - 100);
	assert_true(procdb_summarize(db).nr_confident >= 2);
	return image_of(db);
}

/* Sets every byte to each other value. Version 3 detects every change. */
static void test_every_flip(void **state)
{
	for (u32 version = 1; version <= 3; version++) {
		CLEANUP_IMAGE struct image image = image_version(version);

		for (size_t at = 0; at < image.size; at++)
			for (unsigned int flip = 1; flip < 256; flip++) {
				struct procdb_report report;

				image.bytes[at] ^= (u8)flip;
				report = decode_fresh(&image);
				image.bytes[at] ^= (u8)flip;
				if (version == 3)
					assert_false(is_usable(&report));
			}
		assert_int_equal(decode_fresh(&image).defect, PROCDB_FILE_SOUND);
	}
}

/* Tests every shorter length, and zeros instead of the missing bytes. */
static void test_every_truncation(void **state)
{
	for (u32 version = 1; version <= 3; version++) {
		CLEANUP_IMAGE struct image image = image_version(version);

		for (size_t size = 0; size < image.size; size++) {
			CLEANUP_IMAGE struct image cut = image_copy(image.bytes, size);
			CLEANUP_IMAGE struct image torn = image_copy(image.bytes, image.size);

			assert_int_not_equal(decode_fresh(&cut).defect, PROCDB_FILE_SOUND);
			memset(torn.bytes + size, 0, torn.size - size);
			if (version == 3 && memcmp(torn.bytes, image.bytes, image.size) != 0) {
				struct procdb_report report = decode_fresh(&torn);

				assert_false(is_usable(&report));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defects_are_distinguished),
		cmocka_unit_test(test_descriptions_of_defects),
		cmocka_unit_test(test_damaged_version_field_of_version_3),
		cmocka_unit_test(test_impossible_entry),
		cmocka_unit_test(test_every_flip),
		cmocka_unit_test(test_every_truncation),
	};

	return cmocka_run_group_tests_name("procdb damage", tests, NULL, NULL);
}
