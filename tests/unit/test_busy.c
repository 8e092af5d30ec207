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

static void test_unknown_at_first(void **state)
{
	struct busy_estimate busy = {};

	assert_int_equal(busy_expected_end(&busy), 0);
	busy_begin(&busy, 100);
	assert_int_equal(busy_expected_end(&busy), 0);
	busy_end(&busy, false, 150);
	assert_int_equal(busy_expected_end(&busy), 0); /* it has no work now */
	busy_begin(&busy, 1000);
	assert_int_equal(busy_expected_end(&busy), 1049);
}

static void test_further_work_does_not_begin_again(void **state)
{
	struct busy_estimate busy = {};

	busy_begin(&busy, 100);
	busy_begin(&busy, 120);
	busy_end(&busy, false, 150);
	busy_end(&busy, false, 900); /* a sync that waited for nothing */
	busy_begin(&busy, 1000);
	assert_int_equal(busy_expected_end(&busy), 1049);
}

static void test_late_ends_lower_it(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 1600, false);
	span(&busy, 7000, true);
	assert_int_equal(busy.span_ns, 1500);
	span(&busy, 1400, true); /* even late it was shorter */
	assert_int_equal(busy.span_ns, 1400);
}

/* However late everybody is, the estimate does not follow. */
static void test_it_finds_the_end_again(void **state)
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

/* Nor does it stay too long when nobody knows that it came late. */
static void test_unnoticed_lateness_heals(void **state)
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

static void test_longer_work_is_learned_at_once(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 20, false);
	span(&busy, 70, false);
	assert_int_equal(busy.span_ns, 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_at_first),
		cmocka_unit_test(test_further_work_does_not_begin_again),
		cmocka_unit_test(test_late_ends_lower_it),
		cmocka_unit_test(test_it_finds_the_end_again),
		cmocka_unit_test(test_unnoticed_lateness_heals),
		cmocka_unit_test(test_longer_work_is_learned_at_once),
	};

	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
