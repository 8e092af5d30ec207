/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The binary format of a recording, for the writer and the reader. All numbers are little
 * endian.
 */
#include <zstd.h>
#include "core/bytes.h"
#include "core/crc32c.h"
#include "record/record.h"

#define RECORD_MAGIC	 "zernrec\n"
#define RECORD_MAGIC_LEN 8

/* The window must cover a frame and all of the previous frame, its dictionary. */
#define RECORD_WINDOW_LOG 25
_Static_assert(RECORD_FRAME_MAX * 2 <= 1UL << RECORD_WINDOW_LOG,
	       "the window must cover two frames");

/* The file header: offsets of its members, each aligned for its type. */
enum {
	RECORD_AT_VERSION = RECORD_MAGIC_LEN,
	RECORD_AT_INTERVAL = RECORD_AT_VERSION + 4,
	RECORD_AT_TIME_MS = RECORD_AT_INTERVAL + 4,
	RECORD_AT_MONOTONIC = RECORD_AT_TIME_MS + 8,
	RECORD_AT_HOST = RECORD_AT_MONOTONIC + 8,
	RECORD_AT_ZERNEL = RECORD_AT_HOST + SNAPSHOT_TEXT_LEN,
	RECORD_AT_KERNEL = RECORD_AT_ZERNEL + SNAPSHOT_TEXT_LEN,
	RECORD_AT_CRC = RECORD_AT_KERNEL + SNAPSHOT_TEXT_LEN, /* of all bytes before it */
	RECORD_HEADER_LEN = RECORD_AT_CRC + 4,
};

/* The frame header; the compressed text follows. */
enum {
	FRAME_AT_SIZE = 0,   /* of the compressed text */
	FRAME_AT_LENGTH = 4, /* of the text */
	FRAME_AT_TIME = 8,
	FRAME_AT_KIND = 16,
	FRAME_AT_CRC = 20, /* of all bytes before it in the frame, and of the compressed text */
	FRAME_HEADER_LEN = 24,
};

static inline u32 record_frame_crc(const struct crc32c_table *table, const u8 *header,
				   const void *payload, size_t size)
{
	return ~crc32c_add(table, crc32c_add(table, ~0U, header, FRAME_AT_CRC), payload, size);
}

/* The text of the previous frame of a kind: the dictionary of the next frame of that kind. */
struct record_last {
	char *text;
	size_t length;
};
