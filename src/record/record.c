/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes recordings. */
#include "record/record.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "record/record_format.h"

/* With the previous frame as dictionary, higher levels take longer and save almost no space. */
#define LEVEL 1

struct record_writer {
	FILE *out;
	ZSTD_CCtx *compressor;
	struct crc32c_table table;
	struct record_last last[RECORD_FRAME_NR];
	u8 *payload;
	size_t capacity;
	u64 nr_bytes;
};

static int put(struct record_writer *writer, const void *data, size_t size)
{
	if (fwrite(data, 1, size, writer->out) != size)
		return errno ? -errno : -EIO;
	writer->nr_bytes += size;
	return 0;
}

/* Flushes, so that written frames survive a crash of this program. */
static int hand_over(struct record_writer *writer)
{
	return fflush(writer->out) == 0 ? 0 : -errno;
}

static void put_text(u8 *to, const char *text)
{
	memcpy(to, text, strnlen(text, SNAPSHOT_TEXT_LEN - 1));
}

static int put_header(struct record_writer *writer, const struct record_info *info)
{
	u8 header[RECORD_HEADER_LEN] = RECORD_MAGIC;
	int err;

	put_u32(header + RECORD_AT_VERSION,
		info->has_stacks ? RECORD_VERSION_STACKS : RECORD_VERSION_PLAIN);
	put_u32(header + RECORD_AT_INTERVAL, info->interval_ms);
	put_u64(header + RECORD_AT_TIME_MS, info->time_ms);
	put_u64(header + RECORD_AT_MONOTONIC, info->monotonic_ns);
	put_text(header + RECORD_AT_HOST, info->host);
	put_text(header + RECORD_AT_ZERNEL, info->version);
	put_text(header + RECORD_AT_KERNEL, info->kernel);
	put_u32(header + RECORD_AT_CRC, ~crc32c_add(&writer->table, ~0U, header, RECORD_AT_CRC));
	err = put(writer, header, sizeof(header));
	return err < 0 ? err : hand_over(writer);
}

int record_writer_new(FILE *out, const struct record_info *info, struct record_writer **ret)
{
	CLEANUP(record_writer_free_cleanup)
	struct record_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer)
		return -ENOMEM;
	writer->out = out;
	crc32c_table_fill(&writer->table);
	writer->compressor = ZSTD_createCCtx();
	if (!writer->compressor)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(writer->compressor, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(writer->compressor, ZSTD_c_windowLog, RECORD_WINDOW_LOG);
	err = put_header(writer, info);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(writer);
	return 0;
}

struct record_writer *record_writer_free(struct record_writer *writer)
{
	if (!writer)
		return NULL;
	for (u32 kind = 0; kind < RECORD_FRAME_NR; kind++)
		free(writer->last[kind].text);
	ZSTD_freeCCtx(writer->compressor);
	free(writer->payload);
	free(writer);
	return NULL;
}

static int make_room(struct record_writer *writer, size_t length)
{
	size_t capacity = ZSTD_compressBound(length);
	u8 *payload;

	if (capacity <= writer->capacity)
		return 0;
	payload = realloc(writer->payload, capacity);
	if (!payload)
		return -ENOMEM;
	writer->payload = payload;
	writer->capacity = capacity;
	return 0;
}

int record_write(struct record_writer *writer, enum record_frame_kind kind, u64 time_ns,
		 const char *text, size_t length)
{
	struct record_last *last = &writer->last[kind];
	u8 header[FRAME_HEADER_LEN];
	char *copy;
	size_t size;
	int err = length <= RECORD_FRAME_MAX ? make_room(writer, length) : -E2BIG;

	if (err < 0)
		return err;
	copy = malloc(length + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, length);
	/* The prefix applies to the next frame only. The first frame has no prefix. */
	ZSTD_CCtx_refPrefix(writer->compressor, last->text, last->length);
	size = ZSTD_compress2(writer->compressor, writer->payload, writer->capacity, text, length);
	free(last->text);
	*last = (struct record_last){ copy, length };
	if (ZSTD_isError(size))
		return -ENOMEM;
	put_u32(header + FRAME_AT_SIZE, (u32)size);
	put_u32(header + FRAME_AT_LENGTH, (u32)length);
	put_u64(header + FRAME_AT_TIME, time_ns);
	put_u32(header + FRAME_AT_KIND, kind);
	put_u32(header + FRAME_AT_CRC,
		record_frame_crc(&writer->table, header, writer->payload, size));
	err = put(writer, header, sizeof(header));
	if (err < 0)
		return err;
	err = put(writer, writer->payload, size);
	return err < 0 ? err : hand_over(writer);
}

u64 record_writer_nr_bytes(const struct record_writer *writer)
{
	return writer->nr_bytes;
}
