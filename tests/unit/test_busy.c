/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/busy.h"

#define START 100000

static void span_of(struct busy_estimate *busy, u64 nr_launches, u64 length, bool late)
{
	busy_begin(busy, 0, START);
	busy_end(busy, nr_launches, late, START + length);
}

static void span(struct busy_estimate *busy, u64 length, bool late)
{
	span_of(busy, 1, length, late);
}

/* The expected length of work with this number of launches; 0 if not known. */
static u64 expected(struct busy_estimate *busy, u64 nr_launches)
{
	u64 end;

	busy_begin(busy, 0, START);
	end = busy_expected_end(busy, nr_launches);
	busy->since_ns = 0;
	return end ? end - START : 0;
}

static void test_end_is_unknown_at_first(void **state)
{
	struct busy_estimate busy = {};

	assert_int_equal(busy_expected_end(&busy, 0), 0);
	busy_begin(&busy, 5, 100);
	assert_int_equal(busy_expected_end(&busy, 6), 0);
	busy_end(&busy, 6, false, 150);
	assert_int_equal(busy_expected_end(&busy, 6), 0); /* the GPU has no work now */
	busy_begin(&busy, 6, 1000);
	assert_int_equal(busy_expected_end(&busy, 7), 1050);
}

static void test_more_work_keeps_the_start_time(void **state)
{
	struct busy_estimate busy = {};

	busy_begin(&busy, 0, 100);
	busy_begin(&busy, 1, 120);
	busy_end(&busy, 1, false, 150);
	busy_end(&busy, 1, false, 900); /* a sync without queued work */
	busy_begin(&busy, 1, 1000);
	assert_int_equal(busy_expected_end(&busy, 1), 1050);
}

static void test_late_waiter_never_raises_the_estimate(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 7000, true); /* not even if nothing is known yet */
	assert_int_equal(expected(&busy, 1), 0);
	span(&busy, 1600, false);
	for (int i = 0; i < 100; i++)
		span(&busy, 7000, true);
	assert_int_equal(expected(&busy, 1), 1600);
	span(&busy, 1400, true); /* a shorter span is an upper limit even if it was seen late */
	assert_int_equal(expected(&busy, 1), 1400);
}

/* All spans of a window are longer: the estimate follows after two windows. */
static void test_longer_work_is_learned(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 20, false);
	for (int i = 0; i < 2 * BUSY_RECENT; i++)
		span(&busy, 70, false);
	assert_int_equal(expected(&busy, 1), 70);
}

static void test_shortest_of_the_recent_spans_counts(void **state)
{
	struct busy_estimate busy = {};

	for (int i = 0; i < 1000; i++) {
		span(&busy, i % 2 ? 30 : 2, false);
		if (i > 0)
			assert_int_equal(expected(&busy, 1), 2);
	}
}

static void test_shapes_are_separate(void **state)
{
	static const u64 launches[BUSY_SHAPES] = { 1, 8, 64, 1000 };
	struct busy_estimate busy = {};

	for (u32 i = 0; i < BUSY_SHAPES; i++)
		span_of(&busy, launches[i], 1000 - i, false);
	for (u32 i = 0; i < BUSY_SHAPES; i++)
		assert_int_equal(expected(&busy, launches[i]), 1000 - i);
	/* a counter that decreases, or wraps, only chooses a shape */
	busy_begin(&busy, 1000, START);
	assert_int_equal(busy_expected_end(&busy, 0), START + 997);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_is_unknown_at_first),
		cmocka_unit_test(test_more_work_keeps_the_start_time),
		cmocka_unit_test(test_late_waiter_never_raises_the_estimate),
		cmocka_unit_test(test_longer_work_is_learned),
		cmocka_unit_test(test_shortest_of_the_recent_spans_counts),
		cmocka_unit_test(test_shapes_are_separate),
	};

	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
