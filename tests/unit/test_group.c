/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_cgroups_the_rate_follows_the_weight),
		cmocka_unit_test(test_group_divides_its_share),
		cmocka_unit_test(test_rates_are_bounded_and_ordered),
		cmocka_unit_test(test_promotion_is_bounded),
		cmocka_unit_test(test_limit_is_refilled_and_keeps_debts),
	};

	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
