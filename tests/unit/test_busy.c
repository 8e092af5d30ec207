/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/busy.h"

static void span(struct busy_estimate *busy, u64 length, bool late)
{
	busy_begin(busy, 100000);
	busy_end(busy, late, 100000 + length);
}

static void test_end_is_unknown_at_first(void **state)
{
	struct busy_estimate busy = {};

	assert_int_equal(busy_expected_end(&busy), 0);
	busy_begin(&busy, 100);
	assert_int_equal(busy_expected_end(&busy), 0);
	busy_end(&busy, false, 150);
	assert_int_equal(busy_expected_end(&busy), 0); /* the GPU has no work now */
	busy_begin(&busy, 1000);
	assert_int_equal(busy_expected_end(&busy), 1049);
}

static void test_more_work_keeps_the_start_time(void **state)
{
	struct busy_estimate busy = {};

	busy_begin(&busy, 100);
	busy_begin(&busy, 120);
	busy_end(&busy, false, 150);
	busy_end(&busy, false, 900); /* a sync without queued work */
	busy_begin(&busy, 1000);
	assert_int_equal(busy_expected_end(&busy), 1049);
}

static void test_a_late_waiter_lowers_the_estimate(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 1600, false);
	span(&busy, 7000, true);
	assert_int_equal(busy.span_ns, 1500);
	span(&busy, 1400, true); /* a shorter span counts even if it was seen late */
	assert_int_equal(busy.span_ns, 1400);
}

/* The estimate returns to the true span, although each waiter that follows it is late. */
static void test_late_waiters_do_not_raise_the_estimate(void **state)
{
	struct busy_estimate busy = {};
	const u64 truth = 1000, tick = 400;

	span(&busy, 5000, false);
	for (int i = 0; i < 100; i++) {
		bool late = busy.span_ns > truth;

		span(&busy, late ? busy.span_ns + tick : truth, late);
	}
	assert_in_range(busy.span_ns, truth * 15 / 16, truth);
}

/* The same, if the late waiters are not recognized as late. */
static void test_unrecognized_late_waiters_are_corrected(void **state)
{
	struct busy_estimate busy = {};
	const u64 truth = 20000, pause = 300;

	span(&busy, 25000, false);
	for (int i = 0; i < 100; i++) {
		u64 back;

		busy_begin(&busy, 100000);
		back = busy_expected_end(&busy) - 100000;
		busy_end(&busy, false, 100000 + (back > truth ? back + pause : truth));
	}
	assert_int_equal(busy.span_ns, truth);
}

static void test_longer_work_is_learned_immediately(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 20, false);
	span(&busy, 70, false);
	assert_int_equal(busy.span_ns, 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_is_unknown_at_first),
		cmocka_unit_test(test_more_work_keeps_the_start_time),
		cmocka_unit_test(test_a_late_waiter_lowers_the_estimate),
		cmocka_unit_test(test_late_waiters_do_not_raise_the_estimate),
		cmocka_unit_test(test_unrecognized_late_waiters_are_corrected),
		cmocka_unit_test(test_longer_work_is_learned_immediately),
	};

	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
