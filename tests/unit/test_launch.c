/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/launch.h"

#define SOME_TIME  (100 * NSEC_PER_SEC)
/* What `random` must be so that the next launch is timed by chance, or is not. */
#define BY_CHANCE  634785765U
#define NOT_CHOSEN 1U

static u32 weight_of(struct launch_timing *timing, u32 level, u64 now, u32 chance)
{
	timing->random = chance;
	if (launch_is_inner(timing, level) || !launch_is_timed(timing))
		return 0;
	return launch_weight(timing, now);
}

static void test_all_launches_are_timed_at_low_rates(void **state)
{
	struct launch_timing timing = {};

	for (int second = 0; second < 3; second++)
		for (u32 i = 0; i < LAUNCH_ALL_TIMED - 1; i++)
			assert_int_equal(weight_of(&timing, LEVEL_RUNTIME,
						   SOME_TIME + second * NSEC_PER_SEC, NOT_CHOSEN),
					 1);
}

static void test_samples_are_weighted_at_high_rates(void **state)
{
	struct launch_timing timing = { .second_ns = SOME_TIME, .nr = LAUNCH_ALL_TIMED };
	u64 later = SOME_TIME + NSEC_PER_SEC;

	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, SOME_TIME, NOT_CHOSEN), 0);
	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, SOME_TIME, BY_CHANCE),
			 LAUNCH_TIMED_1_IN);
	/* The sample that finds the second over still stands for the launches before it. */
	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, later, NOT_CHOSEN), 0);
	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, later, BY_CHANCE), LAUNCH_TIMED_1_IN);
	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, later, NOT_CHOSEN), 1);
}

static void test_a_driver_launch_inside_a_runtime_launch_is_not_counted(void **state)
{
	struct launch_timing timing = {};

	assert_int_equal(weight_of(&timing, LEVEL_DRIVER, SOME_TIME, BY_CHANCE), 1);
	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, SOME_TIME, BY_CHANCE), 1);
	assert_int_equal(weight_of(&timing, LEVEL_DRIVER, SOME_TIME, BY_CHANCE), 0);
	assert_int_equal(weight_of(&timing, LEVEL_DRIVER, SOME_TIME, BY_CHANCE), 1);
	/* A launch of the runtime that returned without calling the driver. */
	assert_int_equal(weight_of(&timing, LEVEL_RUNTIME, SOME_TIME, BY_CHANCE), 1);
	launch_returned(&timing);
	assert_int_equal(weight_of(&timing, LEVEL_DRIVER, SOME_TIME, BY_CHANCE), 1);
}

static void test_one_launch_in_16_is_timed_at_high_rates(void **state)
{
	struct launch_timing timing = { .nr = LAUNCH_ALL_TIMED };
	u32 nr = 0;

	for (u32 i = 0; i < 160000; i++)
		nr += launch_is_timed(&timing);
	assert_in_range(nr, 9600, 10400);
}

static void test_start_and_weight_share_one_number(void **state)
{
	u64 all = launch_begun(SOME_TIME, 1), some = launch_begun(SOME_TIME, LAUNCH_TIMED_1_IN);
	u64 none = launch_begun(SOME_TIME, 0);

	assert_int_equal(launch_begun_weight(all), 1);
	assert_int_equal(launch_begun_weight(some), LAUNCH_TIMED_1_IN);
	assert_int_equal(launch_begun_weight(none), 0);
	assert_int_equal(launch_begun_ns(none), SOME_TIME);
	assert_int_equal(launch_begun_ns(all), SOME_TIME);
	assert_int_equal(launch_begun_ns(some), SOME_TIME);
}

static void test_a_long_launch_is_blocked(void **state)
{
	struct launch_timing timing = {};

	assert_false(launch_is_blocked(&timing, 5000));
	assert_false(launch_is_blocked(&timing, 50000));
	assert_true(launch_is_blocked(&timing, 70000));
	/* Where every launch is slow, as in an emulated machine, the bound is higher. */
	timing = (struct launch_timing){};
	assert_false(launch_is_blocked(&timing, 70000));
	assert_false(launch_is_blocked(&timing, 150000));
	assert_true(launch_is_blocked(&timing, 250000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_long_launch_is_blocked),
		cmocka_unit_test(test_all_launches_are_timed_at_low_rates),
		cmocka_unit_test(test_samples_are_weighted_at_high_rates),
		cmocka_unit_test(test_a_driver_launch_inside_a_runtime_launch_is_not_counted),
		cmocka_unit_test(test_one_launch_in_16_is_timed_at_high_rates),
		cmocka_unit_test(test_start_and_weight_share_one_number),
	};

	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
