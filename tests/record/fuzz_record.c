/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Reads arbitrary bytes as a recording. The input is read unchanged, and again with
 * corrected checksums, because a fuzzer cannot guess them. The content of a frame is parsed
 * as its kind, or exported.
 */
#include <stdio.h>
#include <string.h>

#include "ipc/events_json.h"
#include "record/record_export.h"
#include "record/record_format.h"
#include "record/record_stacks.h"
#include "ipc/snapshot_json.h"
#include "fuzz/fuzz.h"

/* Large enough for all interesting inputs, and small enough for many runs. */
#define INPUT_MAX 4096

static FILE *open_bytes(const uint8_t *data, size_t size)
{
	FILE *in = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "re");

	REQUIRE(in);
	return in;
}

static void check_stacks(const struct record_frame *frame)
{
	struct perfetto nowhere = { .out = fopen("/dev/null", "we") };

	REQUIRE(nowhere.out);
	record_put_stacks(&nowhere, frame);
	fclose(nowhere.out);
}

static void check_frame(const struct record_frame *frame)
{
	struct events events = {};
	struct snapshot *s = NULL;

	REQUIRE(strlen(frame->text) <= frame->length && frame->text[frame->length] == '\0');
	if (frame->kind == RECORD_FRAME_EVENTS)
		events_from_json(frame->text, frame->length, &events);
	else if (frame->kind == RECORD_FRAME_LINES)
		check_stacks(frame);
	else
		snapshot_from_json(frame->text, frame->length, &s);
	events_done(&events);
	snapshot_free(s);
}

static void check_frames(const uint8_t *data, size_t size)
{
	FILE *in = open_bytes(data, size);
	struct record_reader *reader = NULL;
	struct record_frame frame;

	REQUIRE(record_reader_new(in, &reader) == 0);
	while (record_read(reader, &frame) > 0)
		check_frame(&frame);
	REQUIRE(record_reader_ending(reader) != RECORD_OPEN);
	REQUIRE(record_reader_nr_bytes(reader) <= size);
	record_reader_free(reader);
	fclose(in);
}

static void check_export(const uint8_t *data, size_t size,
			 int (*export)(struct record_reader *reader, FILE *out))
{
	FILE *in = open_bytes(data, size), *out;
	struct record_reader *reader = NULL;
	char *text = NULL;
	size_t length;

	out = open_memstream(&text, &length);
	REQUIRE(out && record_reader_new(in, &reader) == 0);
	export(reader, out);
	record_reader_free(reader);
	fclose(in);
	fclose(out);
	free(text);
}

static void make_checksums_right(uint8_t *data, size_t size)
{
	static struct crc32c_table table;
	size_t at = RECORD_HEADER_LEN;

	if (!table.lane[0][1])
		crc32c_table_fill(&table);
	if (size < RECORD_HEADER_LEN)
		return;
	put_u32(data + RECORD_AT_CRC, ~crc32c_add(&table, ~0U, data, RECORD_AT_CRC));
	while (size - at >= FRAME_HEADER_LEN) {
		uint8_t *frame = data + at, *payload = frame + FRAME_HEADER_LEN;
		size_t length = get_u32(frame + FRAME_AT_SIZE);

		if (length > size - at - FRAME_HEADER_LEN)
			return;
		put_u32(frame + FRAME_AT_CRC, record_frame_crc(&table, frame, payload, length));
		at += FRAME_HEADER_LEN + length;
	}
}

/* One check per input, chosen by its length, because reading takes most of the time. */
static void check(const uint8_t *data, size_t size)
{
	switch (size % 3) {
	case 0: check_frames(data, size); break;
	case 1: check_export(data, size, record_to_csv); break;
	case 2: check_export(data, size, record_to_perfetto); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *fixed;

	if (size > INPUT_MAX)
		return 0;
	/* Exactly as large as the input, so that the sanitizer detects a read after the end. */
	fixed = malloc(size + !size);
	REQUIRE(fixed);
	memcpy(fixed, data, size);
	make_checksums_right(fixed, size);
	if (memcmp(fixed, data, size) != 0)
		check_frames(data, size);
	check(fixed, size);
	free(fixed);
	return 0;
}
