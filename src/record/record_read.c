/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads recordings from untrusted sources. Sizes are checked before memory is allocated,
 * and a frame is decompressed only when its checksum is correct.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "record/record.h"
#include "record/record_format.h"

struct record_reader {
	FILE *in;
	ZSTD_DCtx *decompressor;
	struct crc32c_table table;
	struct record_last last[RECORD_FRAME_NR];
	struct record_info info;
	enum record_ending ending;
	u64 nr_bytes;
	u64 nr_frames;
};

const char *record_ending_text(enum record_ending ending)
{
	static const char *const texts[] = {
		[RECORD_OPEN] = "not read to the end",
		[RECORD_ENDED] = "complete",
		[RECORD_CUT] = "cut off",
		[RECORD_DAMAGED] = "damaged",
		[RECORD_NEWER] = "from a newer version: use a newer zernel",
		[RECORD_FOREIGN] = "not a recording",
	};

	return texts[ending];
}

/* 1: read `size` bytes; 0: the file ended before. */
static int get(struct record_reader *reader, void *to, size_t size)
{
	errno = 0;
	if (fread(to, 1, size, reader->in) == size)
		return 1;
	return ferror(reader->in) ? -(errno ? errno : EIO) : 0;
}

/* False: snapshot_set_text() would not write this text, or it has no terminating zero. */
static bool take_text(char *to, const u8 *from)
{
	size_t length = strnlen((const char *)from, SNAPSHOT_TEXT_LEN);

	snapshot_set_text(to, SNAPSHOT_TEXT_LEN, (const char *)from, length);
	return length < SNAPSHOT_TEXT_LEN && strncmp(to, (const char *)from, length) == 0;
}

static enum record_ending take_header(struct record_reader *reader, const u8 *header)
{
	struct record_info *info = &reader->info;

	if (get_u32(header + RECORD_AT_CRC) !=
	    (u32)~crc32c_add(&reader->table, ~0U, header, RECORD_AT_CRC))
		return RECORD_DAMAGED;
	info->interval_ms = get_u32(header + RECORD_AT_INTERVAL);
	info->time_ms = get_u64(header + RECORD_AT_TIME_MS);
	info->monotonic_ns = get_u64(header + RECORD_AT_MONOTONIC);
	if (!take_text(info->host, header + RECORD_AT_HOST) ||
	    !take_text(info->version, header + RECORD_AT_ZERNEL) ||
	    !take_text(info->kernel, header + RECORD_AT_KERNEL))
		return RECORD_DAMAGED;
	reader->nr_bytes = RECORD_HEADER_LEN;
	return RECORD_OPEN;
}

/* Only the magic and the version are the same in the headers of all versions. */
static int read_header(struct record_reader *reader)
{
	u8 header[RECORD_HEADER_LEN];
	size_t came = fread(header, 1, RECORD_AT_INTERVAL, reader->in);
	u32 version;
	int n;

	if (ferror(reader->in))
		return errno ? -errno : -EIO;
	if (memcmp(header, RECORD_MAGIC, came < RECORD_MAGIC_LEN ? came : RECORD_MAGIC_LEN) != 0) {
		reader->ending = RECORD_FOREIGN;
		return 0;
	}
	if (came < RECORD_AT_INTERVAL) {
		reader->ending = RECORD_CUT;
		return 0;
	}
	version = get_u32(header + RECORD_AT_VERSION);
	if (version < RECORD_VERSION_PLAIN || version > RECORD_VERSION) {
		reader->ending = version > RECORD_VERSION ? RECORD_NEWER : RECORD_DAMAGED;
		return 0;
	}
	reader->info.has_stacks = version >= RECORD_VERSION_STACKS;
	n = get(reader, header + RECORD_AT_INTERVAL, RECORD_HEADER_LEN - RECORD_AT_INTERVAL);
	if (n < 0)
		return n;
	reader->ending = n == 0 ? RECORD_CUT : take_header(reader, header);
	return 0;
}

int record_reader_new(FILE *in, struct record_reader **ret)
{
	CLEANUP(record_reader_free_cleanup)
	struct record_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	reader->in = in;
	crc32c_table_fill(&reader->table);
	err = read_header(reader);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(reader);
	return 0;
}

struct record_reader *record_reader_free(struct record_reader *reader)
{
	if (!reader)
		return NULL;
	for (u32 kind = 0; kind < RECORD_FRAME_NR; kind++)
		free(reader->last[kind].text);
	ZSTD_freeDCtx(reader->decompressor);
	free(reader);
	return NULL;
}

const struct record_info *record_reader_info(const struct record_reader *reader)
{
	return &reader->info;
}

/* Decompresses a frame. Its text replaces the previous text of its kind. */
static int take_payload(struct record_reader *reader, const u8 *header, const u8 *payload)
{
	struct record_last *last = &reader->last[get_u32(header + FRAME_AT_KIND)];
	size_t size = get_u32(header + FRAME_AT_SIZE), length = get_u32(header + FRAME_AT_LENGTH);
	CLEANUP_FREE char *text = NULL;

	if (get_u32(header + FRAME_AT_CRC) !=
	    record_frame_crc(&reader->table, header, payload, size))
		return 0;
	if (!reader->decompressor)
		reader->decompressor = ZSTD_createDCtx();
	text = malloc(length + 1);
	if (!text || !reader->decompressor)
		return -ENOMEM;
	ZSTD_DCtx_refPrefix(reader->decompressor, last->text, last->length);
	if (ZSTD_decompressDCtx(reader->decompressor, text, length, payload, size) != length)
		return 0;
	text[length] = '\0';
	free(last->text);
	*last = (struct record_last){ TAKE_PTR(text), length };
	return 1;
}

static bool is_possible(const struct record_reader *reader, const u8 *header)
{
	u32 kind = get_u32(header + FRAME_AT_KIND);

	return kind < RECORD_FRAME_NR && (kind != RECORD_FRAME_LINES || reader->info.has_stacks) &&
	       get_u32(header + FRAME_AT_LENGTH) <= RECORD_FRAME_MAX &&
	       get_u32(header + FRAME_AT_SIZE) <= ZSTD_compressBound(RECORD_FRAME_MAX);
}

/* 1: read a frame; 0: no frame, and the ending has the reason. */
static int read_frame(struct record_reader *reader, u8 *header)
{
	CLEANUP_FREE u8 *payload = NULL;
	int n = get(reader, header, FRAME_HEADER_LEN);
	size_t size;

	if (n <= 0) {
		reader->ending = RECORD_CUT;
		return n;
	}
	if (!is_possible(reader, header)) {
		reader->ending = RECORD_DAMAGED;
		return 0;
	}
	size = get_u32(header + FRAME_AT_SIZE);
	payload = malloc(size + 1);
	if (!payload)
		return -ENOMEM;
	n = get(reader, payload, size);
	if (n <= 0) {
		reader->ending = RECORD_CUT;
		return n;
	}
	n = take_payload(reader, header, payload);
	if (n == 0)
		reader->ending = RECORD_DAMAGED;
	return n;
}

int record_read(struct record_reader *reader, struct record_frame *ret)
{
	enum record_frame_kind kind;
	u8 header[FRAME_HEADER_LEN];
	int n = reader->ending == RECORD_OPEN ? read_frame(reader, header) : 0;

	if (n <= 0)
		return n;
	kind = get_u32(header + FRAME_AT_KIND);
	reader->nr_frames++;
	reader->nr_bytes += FRAME_HEADER_LEN + get_u32(header + FRAME_AT_SIZE);
	if (kind == RECORD_FRAME_END) {
		reader->ending = getc(reader->in) == EOF ? RECORD_ENDED : RECORD_DAMAGED;
		return 0;
	}
	*ret = (struct record_frame){
		.kind = kind,
		.time_ns = get_u64(header + FRAME_AT_TIME),
		.text = reader->last[kind].text,
		.length = reader->last[kind].length,
	};
	return 1;
}

enum record_ending record_reader_ending(const struct record_reader *reader)
{
	return reader->ending;
}

u64 record_reader_nr_bytes(const struct record_reader *reader)
{
	return reader->nr_bytes;
}

u64 record_reader_nr_frames(const struct record_reader *reader)
{
	return reader->nr_frames;
}
