/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/busy.h"

static void span(struct busy_estimate *busy, u64 start, u64 length)
{
	busy_begin(busy, start);
	busy_end(busy, start + length);
}

static void test_unknown_at_first(void **state)
{
	struct busy_estimate busy = {};

	assert_int_equal(busy_expected_end(&busy), 0);
	busy_begin(&busy, 100);
	assert_int_equal(busy_expected_end(&busy), 0);
	busy_end(&busy, 150);
	assert_int_equal(busy_expected_end(&busy), 0); /* it has no work now */
	busy_begin(&busy, 1000);
	assert_int_equal(busy_expected_end(&busy), 1050);
}

static void test_further_work_does_not_begin_again(void **state)
{
	struct busy_estimate busy = {};

	busy_begin(&busy, 100);
	busy_begin(&busy, 120);
	busy_end(&busy, 150);
	busy_end(&busy, 900); /* a sync that waited for nothing */
	busy_begin(&busy, 1000);
	assert_int_equal(busy_expected_end(&busy), 1050);
}

static void test_late_ends_do_not_count(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 100, 20);
	for (u64 i = 0; i < 5; i++)
		span(&busy, 1000 + i * 100, 70);
	busy_begin(&busy, 5000);
	assert_int_equal(busy_expected_end(&busy), 5020);
}

static void test_longer_work_is_learned(void **state)
{
	struct busy_estimate busy = {};

	span(&busy, 100, 20);
	for (u64 i = 0; i < 2 * BUSY_ROUND; i++)
		span(&busy, 1000 + i * 100, 70);
	busy_begin(&busy, 5000);
	assert_int_equal(busy_expected_end(&busy), 5070);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_at_first),
		cmocka_unit_test(test_further_work_does_not_begin_again),
		cmocka_unit_test(test_late_ends_do_not_count),
		cmocka_unit_test(test_longer_work_is_learned),
	};

	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
