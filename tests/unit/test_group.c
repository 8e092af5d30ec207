/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/group.h"

/* The rate of a task that is alone with `machine` weight on the machine, without cgroups. */
static u64 rate_alone(u64 machine, u64 weight)
{
	return rate_of_ratio(ratio_of_member(ratio_of_machine(machine), machine, weight));
}

static void test_without_cgroups_the_rate_follows_the_weight(void **state)
{
	static const u64 machines[] = { 1, 100, 900, 12345, 100000, 1000000 };

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		if (machines[i] >= 100)
			assert_in_range(rate_alone(machines[i], 100), RATE_ONE * 97 / 100,
					RATE_ONE);
		if (machines[i] >= 10000)
			assert_in_range(rate_alone(machines[i], 10000), RATE_ONE / 110,
					RATE_ONE / 100);
	}
}

/* Two groups of equal weight with 1 and 8 tasks: the 8 tasks together are as fast as the 1. */
static void test_group_divides_its_share(void **state)
{
	u64 machine = ratio_of_machine(900);
	u64 group = ratio_of_member(machine, 200, 100);
	u64 lone = rate_of_ratio(ratio_of_member(group, 100, 100));
	u64 one_of_eight = rate_of_ratio(ratio_of_member(group, 800, 100));

	assert_in_range(one_of_eight, 8 * lone - 8, 8 * lone + 8);
	assert_in_range(virtual_ns(lone, 8000000), virtual_ns(one_of_eight, 1000000) * 99 / 100,
			virtual_ns(one_of_eight, 1000000) * 101 / 100);
}

/* Any inputs: no overflow, no division by zero, and a heavier member is never faster. */
static void test_rates_are_bounded_and_ordered(void **state)
{
	static const u64 values[] = { 0, 1, 3, 100, 10000, 1 << 20, 1ULL << 24, 1ULL << 40, ~0ULL };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			u64 last = ~0ULL;

			for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
				u64 ratio = ratio_of_machine(values[i]);
				u64 rate;

				for (int level = 0; level < 10; level++)
					ratio = ratio_of_member(ratio, values[j], values[k]);
				rate = rate_of_ratio(ratio);
				assert_in_range(rate, 1, RATE_MAX);
				assert_true(rate <= last);
				last = rate;
				assert_true(virtual_ns(rate, ~0ULL) < 1ULL << 60);
				assert_true(promotion_ns_per_s(ratio, values[i], 1024, 1000) <=
					    10ULL * 1024 * NSEC_PER_SEC);
			}
		}
	}
}

/* A group that always wants to run and goes first while it may: it gets its factor. */
static void test_promotion_is_bounded(void **state)
{
	u64 ratio = ratio_of_member(ratio_of_machine(1000), 1000, 100); /* a tenth of the machine */
	u64 ns_per_s = promotion_ns_per_s(ratio, 1000, 4, 200);
	u64 used = 0, ran = 0;

	assert_in_range(ns_per_s, NSEC_PER_SEC * 78 / 100, NSEC_PER_SEC * 82 / 100);
	for (int ms = 0; ms < 100000; ms++) {
		u64 got = used <= PROMOTION_BURST_NS ? 4 * NSEC_PER_MSEC : 0;

		u64 allowed = promotion_allowed(NSEC_PER_MSEC, ns_per_s);

		ran += got;
		used += got;
		used -= allowed < used ? allowed : used;
	}
	assert_in_range(ran / 100, ns_per_s * 95 / 100, ns_per_s * 105 / 100);
	assert_int_equal(promotion_allowed(~0ULL, ns_per_s), ns_per_s);
}

static void test_limit_is_refilled_and_keeps_debts(void **state)
{
	struct group_limit limit = { 20, 100, 0 }, burst = { 20, 100, 30 };

	assert_int_equal(limit_refill(&limit, 20, 1), 20);
	assert_int_equal(limit_refill(&limit, 5, 1), 20);
	assert_int_equal(limit_refill(&limit, -25, 1), -5);
	assert_int_equal(limit_refill(&limit, -25, 2), 15);
	assert_int_equal(limit_refill(&limit, -25, 1ULL << 60), 20);
	assert_int_equal(limit_refill(&burst, 20, 1), 40);
	assert_int_equal(limit_refill(&burst, 20, 2), 50);
	assert_int_equal(limit_refill(&burst, 50, 0), 50);
}

#define NR_CACHES 128
#define NR_TASKS  40

/* Few tasks wake up in one cache and go to sleep in another one, each time. */
static void test_the_weight_of_the_machine_stays_near_that_of_its_tasks(void **state)
{
	s64 sum = 0, kept[NR_CACHES] = {}, weight = 0;
	bool runs[NR_TASKS] = {};

	srandom(1);
	for (int i = 0; i < 100000; i++) {
		long task = random() % NR_TASKS, cache = random() % (NR_CACHES / 2);
		s64 change = runs[task] ? -GROUP_WEIGHT_DEFAULT : GROUP_WEIGHT_DEFAULT;

		runs[task] = !runs[task];
		weight += change;
		cache += change < 0 ? NR_CACHES / 2 : 0;
		kept[cache] += change;
		if (weight_is_passed_on(kept[cache], machine_weight_of(sum), NR_CACHES)) {
			sum += kept[cache];
			kept[cache] = 0;
		}
		assert_true(machine_weight_of(sum) * 8 >= (u64)weight * 7);
		assert_true(machine_weight_of(sum) * 7 <= (u64)weight * 8 ||
			    machine_weight_of(sum) == GROUP_WEIGHT_DEFAULT);
	}
	assert_int_equal(machine_weight_of(-5), GROUP_WEIGHT_DEFAULT);
}

static void test_a_busy_cache_keeps_small_changes(void **state)
{
	assert_false(weight_is_passed_on(100, 64 * 200 * 100, 8));
	assert_false(weight_is_passed_on(-399, 64 * 200 * 100, 8));
	assert_true(weight_is_passed_on(-400, 64 * 200 * 100, 8));
	assert_true(weight_is_passed_on(100, 20 * 100, 8));
	assert_true(weight_is_passed_on(-100, 20 * 100, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_cgroups_the_rate_follows_the_weight),
		cmocka_unit_test(test_group_divides_its_share),
		cmocka_unit_test(test_rates_are_bounded_and_ordered),
		cmocka_unit_test(test_promotion_is_bounded),
		cmocka_unit_test(test_limit_is_refilled_and_keeps_debts),
		cmocka_unit_test(test_the_weight_of_the_machine_stays_near_that_of_its_tasks),
		cmocka_unit_test(test_a_busy_cache_keeps_small_changes),
	};

	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
