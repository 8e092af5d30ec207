/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "core/tier.h"

static void tier_numbers_match_the_reference(void **state)
{
	assert_int_equal(TIER_BATCH, 0);
	assert_int_equal(TIER_INTERACTIVE, 1);
	assert_int_equal(TIER_LAT_CRITICAL, 2);
	assert_int_equal(TIER_DEFAULT, TIER_INTERACTIVE);
}

static void averages_weight_old_7_to_new_1(void **state)
{
	assert_int_equal(tier_average(1000, 1000), 1000);
	assert_int_equal(tier_average(1000, 2000), 1125);
	assert_int_equal(tier_average(0, 7), 0);
	assert_int_equal(tier_average(1, 1), 1);
	assert_int_equal(tier_average(15, 0), 13);
	assert_int_equal(tier_average(~0ULL, ~0ULL), ~0ULL);
}

static void each_behavior_has_its_tier(void **state)
{
	/* clang-format off */
	static const struct {
		struct tier_view view;
		enum tier tier;
	} rows[] = {
		/*    run        sleep       woken waking partners */
		{ { 10000000,         0,     0,     0,  0 }, TIER_BATCH },	  /* never sleeps */
		{ { 10000000,  10000000,    50,     0,  0 }, TIER_BATCH },	  /* runs half of the time */
		{ { 10000000,  10000001,    50,     0,  0 }, TIER_INTERACTIVE }, /* runs less than half */
		{ { 10000000,         0, 10000, 10000, 20 }, TIER_BATCH },	  /* wakeups do not matter */
		{ {  1000000,    100000,   900,     0,  0 }, TIER_BATCH },
		{ {   999999,    100000,   900,     0,  0 }, TIER_INTERACTIVE },
		{ {   100000, 100000000,    10,     0,  0 }, TIER_INTERACTIVE },
		{ {    50000,  10000000,    63,    63,  0 }, TIER_LAT_CRITICAL }, /* 6 + 6 */
		{ {    50000,  10000000,    63,    62,  0 }, TIER_INTERACTIVE },
		{ {    50000,  10000000,    63,     0, 12 }, TIER_LAT_CRITICAL }, /* by its partners */
		{ {    50000,  10000000,    63,     0, 11 }, TIER_INTERACTIVE },
		{ {        0,         0,     0,     0,  0 }, TIER_INTERACTIVE },
		{ { ~0ULL, ~0ULL, NSEC_PER_SEC, NSEC_PER_SEC, ~0U }, TIER_BATCH },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (tier_observe(&rows[i].view) != rows[i].tier)
			fail_msg("row %zu has the wrong tier", i);
}

static void tiers_have_labels(void **state)
{
	assert_string_equal(tier_label(TIER_BATCH), "batch");
	assert_string_equal(tier_label(TIER_INTERACTIVE), "interactive");
	assert_string_equal(tier_label(TIER_LAT_CRITICAL), "latency_critical");
	assert_string_equal(tier_label(77), "latency_critical");
}

int main(void)
{
	const struct CMUnitTest tier[] = {
		cmocka_unit_test(each_behavior_has_its_tier),
		cmocka_unit_test(tiers_have_labels),
		cmocka_unit_test(tier_numbers_match_the_reference),
		cmocka_unit_test(averages_weight_old_7_to_new_1),
	};

	return cmocka_run_group_tests(tier, NULL, NULL);
}
