/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/record.h"
#include "record/record_format.h"
#include "ipc/snapshot_json.h"
#include "metrics/node.h"

#define NR_FRAMES 12
#define NR_CUTS	  1000

static const struct record_info info = {
	.time_ms = 1700000000123,
	.monotonic_ns = 55,
	.interval_ms = 200,
	.has_stacks = true,
	.host = "node-1",
	.version = "0.1.0",
	.kernel = "6.18",
};

/* A recording in memory, and its original frames. */
struct sample {
	char *file;
	size_t size;
	char *texts[NR_FRAMES];
	size_t lengths[NR_FRAMES];
	size_t ends[NR_FRAMES]; /* bytes of the file up to the end of each frame */
};

static enum record_frame_kind kind_of(u32 i)
{
	static const enum record_frame_kind kinds[] = { RECORD_FRAME_SNAPSHOT, RECORD_FRAME_EVENTS,
							RECORD_FRAME_SNAPSHOT, RECORD_FRAME_LINES };

	return kinds[i % ARRAY_SIZE(kinds)];
}

/* Snapshots of a node at growing age, with shorter texts in between. */
static char *text_of(u32 i, size_t *ret_length)
{
	struct node node = { .nr_ranks = 1, .nr_operations = 1, .age_s = i };
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = node_snapshot(&node);
	char *text = NULL;

	if (kind_of(i) == RECORD_FRAME_SNAPSHOT)
		assert_int_equal(snapshot_to_json(s, &text, ret_length), 0);
	else
		*ret_length = (size_t)asprintf(&text, "{\"lost\":%u,\"events\":[]}", i);
	return text;
}

static void sample_make(struct sample *sample)
{
	FILE *out = open_memstream(&sample->file, &sample->size);
	struct record_writer *writer = NULL;

	assert_non_null(out);
	assert_int_equal(record_writer_new(out, &info, &writer), 0);
	for (u32 i = 0; i < NR_FRAMES; i++) {
		sample->texts[i] = text_of(i, &sample->lengths[i]);
		assert_int_equal(record_write(writer, kind_of(i), 1000 + i, sample->texts[i],
					      sample->lengths[i]),
				 0);
		sample->ends[i] = record_writer_nr_bytes(writer);
	}
	assert_int_equal(record_write(writer, RECORD_FRAME_END, 2000, "", 0), 0);
	assert_int_equal(record_writer_nr_bytes(writer), ftell(out));
	record_writer_free(writer);
	fclose(out);
}

static void sample_done(struct sample *sample)
{
	for (u32 i = 0; i < NR_FRAMES; i++)
		free(sample->texts[i]);
	free(sample->file);
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct sample));
	sample_make(*state);
	return 0;
}

static int teardown(void **state)
{
	sample_done(*state);
	free(*state);
	return 0;
}

/* Checks that every frame read is the frame written. Returns the ending. */
static enum record_ending read_back(const struct sample *sample, const void *file, size_t size,
				    u64 *ret_nr, u64 *ret_bytes)
{
	FILE *in = size ? fmemopen((void *)file, size, "r") : fopen("/dev/null", "re");
	struct record_reader *reader = NULL;
	struct record_frame frame;
	enum record_ending ending;
	u64 nr = 0;

	assert_non_null(in);
	assert_int_equal(record_reader_new(in, &reader), 0);
	while (record_read(reader, &frame) > 0) {
		assert_true(nr < NR_FRAMES);
		assert_int_equal(frame.kind, kind_of((u32)nr));
		assert_int_equal(frame.time_ns, 1000 + nr);
		assert_int_equal(frame.length, sample->lengths[nr]);
		assert_string_equal(frame.text, sample->texts[nr]);
		nr++;
	}
	assert_int_equal(record_read(reader, &frame), 0);
	ending = record_reader_ending(reader);
	if (ending == RECORD_ENDED)
		assert_memory_equal(record_reader_info(reader), &info, sizeof(info));
	*ret_nr = nr;
	*ret_bytes = record_reader_nr_bytes(reader);
	record_reader_free(reader);
	fclose(in);
	return ending;
}

static void test_a_written_recording_can_be_read(void **state)
{
	const struct sample *sample = *state;
	u64 nr, bytes;

	assert_int_equal(read_back(sample, sample->file, sample->size, &nr, &bytes), RECORD_ENDED);
	assert_int_equal(nr, NR_FRAMES);
	assert_int_equal(bytes, sample->size);
}

static u32 frames_before(const struct sample *sample, size_t size)
{
	u32 nr = 0;

	while (nr < NR_FRAMES && sample->ends[nr] <= size)
		nr++;
	return nr;
}

static void check_cut(const struct sample *sample, size_t size)
{
	u32 whole = frames_before(sample, size);
	u64 nr, bytes;

	assert_int_equal(read_back(sample, sample->file, size, &nr, &bytes), RECORD_CUT);
	assert_int_equal(nr, whole);
	if (whole)
		assert_int_equal(bytes, sample->ends[whole - 1]);
}

static void test_a_truncated_recording_is_read_up_to_the_cut(void **state)
{
	const struct sample *sample = *state;
	struct random r = { 1 };

	for (u32 i = 0; i < NR_CUTS; i++)
		check_cut(sample, random_below(&r, (u32)sample->size));
	for (u32 i = 0; i < NR_FRAMES; i++)
		check_cut(sample, sample->ends[i]);
	for (size_t size = 0; size < RECORD_HEADER_LEN; size++)
		check_cut(sample, size);
}

/* The frames before the damage are unchanged, and no frame after it is used. */
static void test_every_damaged_byte_is_noticed(void **state)
{
	const struct sample *sample = *state;
	CLEANUP_FREE char *file = malloc(sample->size);

	for (size_t at = 0; at < sample->size; at++) {
		enum record_ending ending;
		u64 nr, bytes;

		memcpy(file, sample->file, sample->size);
		file[at] = (char)(file[at] ^ 1 << at % 8);
		ending = read_back(sample, file, sample->size, &nr, &bytes);
		assert_true(ending != RECORD_ENDED && ending != RECORD_OPEN);
		assert_int_equal(nr, frames_before(sample, at));
	}
}

static void test_other_endings_are_reported(void **state)
{
	const struct sample *sample = *state;
	CLEANUP_FREE char *file = calloc(1, sample->size + 1);
	u64 nr, bytes;

	assert_int_equal(read_back(sample, "PDDB and more", 13, &nr, &bytes), RECORD_FOREIGN);
	memcpy(file, sample->file, sample->size);
	assert_int_equal(read_back(sample, file, sample->size + 1, &nr, &bytes), RECORD_DAMAGED);
	assert_int_equal(nr, NR_FRAMES);
	assert_int_equal(get_u32((u8 *)file + RECORD_AT_VERSION), RECORD_VERSION);
	put_u32((u8 *)file + RECORD_AT_VERSION, RECORD_VERSION + 1);
	assert_int_equal(read_back(sample, file, sample->size, &nr, &bytes), RECORD_NEWER);
	assert_int_equal(nr, 0);
	put_u32((u8 *)file + RECORD_AT_VERSION, 0);
	assert_int_equal(read_back(sample, file, sample->size, &nr, &bytes), RECORD_DAMAGED);
}

/* Reads the recording with a changed header of the first frame and a corrected checksum. */
static enum record_ending with_header(const struct sample *sample, u32 at, u32 value)
{
	CLEANUP_FREE char *file = malloc(sample->size);
	u8 *frame = (u8 *)file + RECORD_HEADER_LEN;
	struct crc32c_table table;
	u64 nr, bytes;

	crc32c_table_fill(&table);
	memcpy(file, sample->file, sample->size);
	put_u32(frame + at, value);
	put_u32(frame + FRAME_AT_CRC,
		record_frame_crc(&table, frame, frame + FRAME_HEADER_LEN,
				 sample->ends[0] - RECORD_HEADER_LEN - FRAME_HEADER_LEN));
	return read_back(sample, file, sample->size, &nr, &bytes);
}

static void test_invalid_frames_are_damage(void **state)
{
	const struct sample *sample = *state;
	u32 length = (u32)sample->lengths[0];

	assert_int_equal(with_header(sample, FRAME_AT_LENGTH, length), RECORD_ENDED);
	assert_int_equal(with_header(sample, FRAME_AT_LENGTH, length + 1), RECORD_DAMAGED);
	assert_int_equal(with_header(sample, FRAME_AT_LENGTH, length - 1), RECORD_DAMAGED);
	assert_int_equal(with_header(sample, FRAME_AT_LENGTH, UINT32_MAX), RECORD_DAMAGED);
	assert_int_equal(with_header(sample, FRAME_AT_SIZE, UINT32_MAX), RECORD_DAMAGED);
	assert_int_equal(with_header(sample, FRAME_AT_SIZE, RECORD_FRAME_MAX), RECORD_CUT);
	assert_int_equal(with_header(sample, FRAME_AT_KIND, RECORD_FRAME_NR), RECORD_DAMAGED);
}

static void test_a_full_disk_is_a_failure(void **state)
{
	struct record_writer *writer = NULL;
	FILE *out = fopen("/dev/full", "we");

	assert_non_null(out);
	assert_int_equal(record_writer_new(out, &info, &writer), -ENOSPC);
	assert_null(writer);
	fclose(out);
}

static void test_the_largest_frame_and_a_larger_one(void **state)
{
	CLEANUP_FREE char *text = malloc(RECORD_FRAME_MAX + 1), *file = NULL;
	struct record_writer *writer = NULL;
	struct record_reader *reader = NULL;
	struct random r = { 7 };
	struct record_frame frame;
	size_t size = 0;
	FILE *stream = open_memstream(&file, &size);

	for (size_t i = 0; i < RECORD_FRAME_MAX; i++)
		text[i] = (char)('a' + random_below(&r, 16));
	assert_int_equal(record_writer_new(stream, &info, &writer), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			record_write(writer, RECORD_FRAME_SNAPSHOT, 1, text, RECORD_FRAME_MAX), 0);
	assert_int_equal(record_write(writer, RECORD_FRAME_SNAPSHOT, 1, text, RECORD_FRAME_MAX + 1),
			 -E2BIG);
	record_writer_free(writer);
	fclose(stream);

	stream = fmemopen(file, size, "r");
	assert_int_equal(record_reader_new(stream, &reader), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(record_read(reader, &frame), 1);
		assert_int_equal(frame.length, RECORD_FRAME_MAX);
		assert_memory_equal(frame.text, text, RECORD_FRAME_MAX);
	}
	assert_int_equal(record_read(reader, &frame), 0);
	assert_int_equal(record_reader_ending(reader), RECORD_CUT);
	record_reader_free(reader);
	fclose(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_written_recording_can_be_read),
		cmocka_unit_test(test_a_truncated_recording_is_read_up_to_the_cut),
		cmocka_unit_test(test_every_damaged_byte_is_noticed),
		cmocka_unit_test(test_other_endings_are_reported),
		cmocka_unit_test(test_invalid_frames_are_damage),
		cmocka_unit_test(test_a_full_disk_is_a_failure),
		cmocka_unit_test(test_the_largest_frame_and_a_larger_one),
	};

	return cmocka_run_group_tests_name("record", tests, setup, teardown);
}
