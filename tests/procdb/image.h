/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Database files in memory. */
#include <errno.h>

#include "procdb/support.h"

struct image {
	u8 *bytes;
	size_t size;
};

static inline void image_free(struct image *image)
{
	free(image->bytes);
}

#define CLEANUP_IMAGE CLEANUP(image_free)

static inline struct image image_of(const struct procdb *db)
{
	struct image image = { .size = procdb_encoded_size(db) };
	size_t size = 0;

	image.bytes = malloc(image.size);
	assert_non_null(image.bytes);
	assert_int_equal(procdb_encode(db, image.bytes, image.size, &size), 0);
	assert_int_equal(size, image.size);
	return image;
}

/* Allocates exactly `size` bytes, so that sanitizers detect a read past the end. */
static inline struct image image_copy(const void *bytes, size_t size)
{
	struct image image = { .bytes = malloc(size ? size : 1), .size = size };

	assert_non_null(image.bytes);
	memcpy(image.bytes, bytes, size);
	return image;
}

static inline void put_le(u8 *at, u64 value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (u8)(value >> 8 * i);
}

/* Writes old files from the description of the format, not with the code under test. */
static inline struct image image_old(u32 version, u32 count)
{
	static const u8 entry_bytes[] = { [1] = 40, [2] = 64 };
	struct image image = { .size = 12 + (size_t)count * entry_bytes[version] };

	image.bytes = calloc(1, image.size);
	assert_non_null(image.bytes);
	memcpy(image.bytes, "PDDB", 4);
	put_le(image.bytes + 4, version, 4);
	put_le(image.bytes + 8, count, 4);
	for (u32 i = 0; i < count; i++) {
		u8 *at = image.bytes + 12 + i * entry_bytes[version];

		snprintf((char *)at, COMM_LEN, "old-%u", i);
		at[16] = (u8)(i % 4);
		put_le(at + 24, 5000 + i, 8);
		if (version == 2) {
			put_le(at + 32, 50 + i, 8);
			put_le(at + 40, 60 + i, 8);
			put_le(at + 48, 70 + i, 8);
		}
		put_le(at + entry_bytes[version] - 8, 100 + i, 4);
		put_le(at + entry_bytes[version] - 4, 2 + 20 * i, 4);
	}
	return image;
}

static inline bool is_usable(const struct procdb_report *report)
{
	return report->defect == PROCDB_FILE_SOUND ||
	       (report->defect == PROCDB_FILE_TRAILING && report->version < 3);
}

static inline struct procdb_report decode_report(struct procdb *db, const struct image *image)
{
	struct procdb_report report = {};
	int r = procdb_decode(db, image->bytes, image->size, EPOCH_S, &report);

	assert_int_equal(r, is_usable(&report) ? 0 : -EBADMSG);
	if (r < 0)
		assert_int_equal(procdb_summarize(db).nr_profiles, 0);
	return report;
}

static inline enum procdb_defect decode(struct procdb *db, const struct image *image)
{
	return decode_report(db, image).defect;
}
