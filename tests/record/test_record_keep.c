/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The latest minutes of a recording, in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_keep.h"

static struct record_info info_at(u64 second)
{
	return (struct record_info){
		.time_ms = 1000 * second,
		.monotonic_ns = second * NSEC_PER_SEC,
		.interval_ms = 1000,
		.host = "node-1",
	};
}

/* Texts differ little, as snapshots do. */
static void add(struct record_keep *keep, u64 second)
{
	struct record_info info = info_at(second);
	char text[4096];
	int length =
		snprintf(text, sizeof(text), "{\"second\":%llu,\"rest\":\"%03000d\"}", second, 7);

	assert_int_equal(record_keep_snapshot(keep, &info, text, (size_t)length), 0);
}

static u64 found_second(struct record_keep *keep, u64 second, u64 since)
{
	unsigned long long found;
	size_t length;
	char *text;

	assert_int_equal(
		record_keep_find(keep, second * NSEC_PER_SEC, since * NSEC_PER_SEC, &text, &length),
		0);
	assert_int_equal(length, strlen(text));
	assert_int_equal(sscanf(text, "{\"second\":%llu", &found), 1);
	free(text);
	return found;
}

static void finds_the_snapshot_of_each_moment(void **state)
{
	struct record_keep *keep;
	size_t length;
	char *text;

	assert_int_equal(record_keep_new(1 << 20, 1000 * NSEC_PER_SEC, &keep), 0);
	assert_int_equal(record_keep_find(keep, 5, 0, &text, &length), -ENODATA);
	for (u64 second = 100; second < 200; second++)
		add(keep, second);
	for (u64 second = 100; second < 200; second++)
		assert_int_equal(found_second(keep, second, 0), second);
	assert_int_equal(found_second(keep, 1, 0), 100);
	assert_int_equal(found_second(keep, 999, 0), 199);
	/* A new connection to zerneld: nothing before it is used. */
	assert_int_equal(found_second(keep, 110, 155), 155);
	record_keep_free(keep);
}

static void keeps_its_span_and_its_bound(void **state)
{
	struct record_keep *keep;

	assert_int_equal(record_keep_new(1 << 20, 50 * NSEC_PER_SEC, &keep), 0);
	for (u64 second = 1; second < 500; second++)
		add(keep, second);
	assert_in_range(found_second(keep, 1, 0), 499 - 60, 499 - 50);
	record_keep_free(keep);

	assert_int_equal(record_keep_new(3000, 1000 * NSEC_PER_SEC, &keep), 0);
	for (u64 second = 1; second < 500; second++) {
		add(keep, second);
		assert_in_range(record_keep_bytes(keep), 1, 3000);
	}
	assert_int_equal(found_second(keep, 499, 0), 499);
	record_keep_free(keep);
}

static void the_copy_is_a_complete_recording(void **state)
{
	struct record_keep *keep;
	struct record_reader *reader;
	struct record_frame frame;
	u64 nr = 0, nr_events = 0;
	size_t length;
	char *bytes;
	FILE *in;

	assert_int_equal(record_keep_new(1 << 20, 1000 * NSEC_PER_SEC, &keep), 0);
	for (u64 second = 100; second < 195; second++) {
		add(keep, second);
		assert_int_equal(record_keep_events(keep, "{\"lost\":0}", 10), 0);
	}
	assert_int_equal(record_keep_copy(keep, 150 * NSEC_PER_SEC, &bytes, &length), 0);
	in = fmemopen(bytes, length, "r");
	assert_int_equal(record_reader_new(in, &reader), 0);
	assert_int_equal(record_reader_info(reader)->monotonic_ns, 150 * NSEC_PER_SEC);
	while (record_read(reader, &frame) == 1) {
		unsigned long long second;

		if (frame.kind == RECORD_FRAME_EVENTS) {
			assert_string_equal(frame.text, "{\"lost\":0}");
			nr_events++;
			continue;
		}
		assert_int_equal(sscanf(frame.text, "{\"second\":%llu", &second), 1);
		assert_int_equal(second, 150 + nr++);
	}
	assert_int_equal(record_reader_ending(reader), RECORD_ENDED);
	assert_int_equal(nr, 45);
	assert_int_equal(nr_events, 45);
	record_reader_free(reader);
	fclose(in);
	free(bytes);
	record_keep_free(keep);
}

static void a_large_snapshot_is_not_kept(void **state)
{
	struct record_info info = info_at(1);
	size_t length = 5 << 20;
	char *text = calloc(1, length + 1);
	struct record_keep *keep;

	memset(text, ' ', length);
	assert_int_equal(record_keep_new(1 << 20, NSEC_PER_SEC, &keep), 0);
	assert_int_equal(record_keep_snapshot(keep, &info, text, length), -E2BIG);
	assert_int_equal(record_keep_copy(keep, 0, &text, &length), -ENODATA);
	record_keep_free(keep);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_snapshot_of_each_moment),
		cmocka_unit_test(keeps_its_span_and_its_bound),
		cmocka_unit_test(the_copy_is_a_complete_recording),
		cmocka_unit_test(a_large_snapshot_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
