/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/balance.h"

#define NR_CPUS	 8
#define NR_STEPS 200

static void test_the_average_follows_the_speed(void **state)
{
	u64 speed = balance_speed(0, 8 * NSEC_PER_MSEC, 16 * NSEC_PER_MSEC);

	assert_in_range(speed, 499900, 500000);
	for (u32 i = 0; i < 20; i++)
		speed = balance_speed(speed, 4 * NSEC_PER_MSEC, 16 * NSEC_PER_MSEC);
	assert_in_range(speed, 249900, 250000);
}

static void test_only_a_slow_cache_lags(void **state)
{
	assert_int_equal(balance_lag(400, 400), 0);
	assert_int_equal(balance_lag(500, 400), 0);
	assert_int_equal(balance_lag(300, 400), BALANCE_ONE / 4);
	assert_int_equal(balance_lag(0, 400), BALANCE_ONE);
	assert_int_equal(balance_lag(400, 0), 0);
}

static void test_a_long_queue_moves_more_likely(void **state)
{
	assert_int_equal(balance_chance(BALANCE_ONE, 0, NR_CPUS), BALANCE_ONE / 4);
	assert_int_equal(balance_chance(BALANCE_ONE, 3 * NR_CPUS, NR_CPUS), BALANCE_ONE);
	assert_true(balance_chance(BALANCE_LEAST, 400 * NR_CPUS, NR_CPUS) > BALANCE_ONE);
	assert_int_equal(balance_chance(0, 1000, NR_CPUS), 0);
}

/* Tasks of two caches: in each step, as many come to the end of a slice as there are CPUs. */
static void balance(double tasks[2], u32 from)
{
	u64 speed[] = { (u64)(1e6 * NR_CPUS / tasks[0]), (u64)(1e6 * NR_CPUS / tasks[1]) };
	u64 lag = balance_lag(speed[from], speed[!from]);
	double chance = (double)balance_chance(lag, (u64)tasks[from] - NR_CPUS, NR_CPUS);
	double moved = NR_CPUS * (chance < BALANCE_ONE ? chance : BALANCE_ONE) / BALANCE_ONE / 2;

	if (lag < BALANCE_LEAST)
		return;
	tasks[from] -= moved;
	tasks[!from] += moved;
}

static void test_caches_become_equal(void **state)
{
	static const double starts[][2] = { { 40, 8 }, { 24, 20 }, { 500, 30 } };

	for (u32 i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		double tasks[] = { starts[i][0], starts[i][1] };

		for (u32 step = 0; step < NR_STEPS; step++) {
			balance(tasks, 0);
			balance(tasks, 1);
		}
		assert_true(tasks[0] < 1.1 * tasks[1]);
		assert_true(tasks[1] < 1.1 * tasks[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_average_follows_the_speed),
		cmocka_unit_test(test_only_a_slow_cache_lags),
		cmocka_unit_test(test_a_long_queue_moves_more_likely),
		cmocka_unit_test(test_caches_become_equal),
	};

	return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
