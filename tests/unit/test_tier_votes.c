/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/tier_votes.h"

#define VOTES(batch, interactive, critical)                                                        \
	(&(struct tier_votes){ { batch, interactive, critical } })

static void a_vote_counts_for_the_observed_tier(void **state)
{
	struct tier_votes votes = {};

	tier_vote(&votes, TIER_BATCH);
	tier_vote(&votes, TIER_INTERACTIVE);
	tier_vote(&votes, TIER_INTERACTIVE);
	assert_int_equal(votes.nr[TIER_BATCH], 1);
	assert_int_equal(votes.nr[TIER_INTERACTIVE], 2);
	assert_int_equal(votes.nr[TIER_LAT_CRITICAL], 0);
}

static void a_value_above_two_counts_as_two(void **state)
{
	struct tier_votes votes = {};

	tier_vote(&votes, 2);
	tier_vote(&votes, 3);
	tier_vote(&votes, ~0U);
	assert_int_equal(votes.nr[TIER_LAT_CRITICAL], 3);
}

static void a_vote_count_does_not_overflow(void **state)
{
	struct tier_votes votes = { { ~0U } };

	tier_vote(&votes, TIER_BATCH);
	assert_int_equal(votes.nr[TIER_BATCH], ~0U);
}

static void the_tier_with_most_votes_dominates(void **state)
{
	assert_int_equal(tier_dominant(VOTES(3, 2, 1)), TIER_BATCH);
	assert_int_equal(tier_dominant(VOTES(1, 3, 2)), TIER_INTERACTIVE);
	assert_int_equal(tier_dominant(VOTES(1, 2, 3)), TIER_LAT_CRITICAL);
}

static void the_higher_tier_wins_a_tie(void **state)
{
	assert_int_equal(tier_dominant(VOTES(2, 2, 0)), TIER_INTERACTIVE);
	assert_int_equal(tier_dominant(VOTES(2, 0, 2)), TIER_LAT_CRITICAL);
	assert_int_equal(tier_dominant(VOTES(0, 2, 2)), TIER_LAT_CRITICAL);
	assert_int_equal(tier_dominant(VOTES(2, 2, 2)), TIER_LAT_CRITICAL);
}

static void without_votes_the_default_tier_dominates(void **state)
{
	assert_int_equal(tier_dominant(VOTES(0, 0, 0)), TIER_DEFAULT);
}

static void tier_confidence_is_the_share_of_the_dominant_tier(void **state)
{
	assert_int_equal(tier_confidence_permille(VOTES(0, 0, 0)), 0);
	assert_int_equal(tier_confidence_permille(VOTES(0, 5, 0)), 1000);
	assert_int_equal(tier_confidence_permille(VOTES(3, 1, 0)), 750);
	assert_int_equal(tier_confidence_permille(VOTES(1, 1, 1)), 333);
	assert_int_equal(tier_confidence_permille(VOTES(~0U, ~0U, ~0U)), 333);
}

static void fewer_than_three_observations_give_no_confidence(void **state)
{
	assert_int_equal(tier_behaviour_permille(VOTES(0, 2, 0), 2, 1000, 0), 0);
	assert_false(tier_is_confident(VOTES(0, 2, 0), 2, 1000, 0));
	assert_int_equal(tier_behaviour_permille(VOTES(0, 3, 0), 3, 1000, 0), 1000);
	assert_true(tier_is_confident(VOTES(0, 3, 0), 3, 1000, 0));
}

static void deviation_halves_the_confidence_at_most(void **state)
{
	assert_int_equal(tier_behaviour_permille(VOTES(0, 4, 0), 4, 1000, 500), 750);
	assert_int_equal(tier_behaviour_permille(VOTES(0, 4, 0), 4, 1000, 1000), 500);
	assert_int_equal(tier_behaviour_permille(VOTES(0, 4, 0), 4, 1000, 5000), 500);
	assert_int_equal(tier_behaviour_permille(VOTES(0, 3, 1), 4, 1000, 500), 562);
}

static void without_an_average_stability_is_zero(void **state)
{
	assert_int_equal(tier_behaviour_permille(VOTES(0, 4, 0), 4, 0, 0), 500);
	assert_int_equal(tier_behaviour_permille(VOTES(0, 4, 0), 4, 0, 9), 500);
	assert_false(tier_is_confident(VOTES(0, 4, 0), 4, 0, 0));
}

static void no_votes_give_no_confidence(void **state)
{
	assert_int_equal(tier_behaviour_permille(VOTES(0, 0, 0), 9, 1000, 0), 0);
	assert_false(tier_is_confident(VOTES(0, 0, 0), 9, 1000, 0));
}

static void a_confidence_of_exactly_600_permille_is_enough(void **state)
{
	/* 3/5 x 1, and 1 x (0.5 + 0.5 x 0.2) */
	assert_true(tier_is_confident(VOTES(0, 3, 2), 5, 1000, 0));
	assert_true(tier_is_confident(VOTES(0, 5, 0), 5, 1000, 800));
	assert_int_equal(tier_behaviour_permille(VOTES(0, 5, 0), 5, 1000, 800), 600);
}

static void a_confidence_just_below_600_permille_is_not_enough(void **state)
{
	const u64 huge = 5ULL << 60;

	assert_false(tier_is_confident(VOTES(0, 3, 2), 5, ~0ULL, 1));
	assert_false(tier_is_confident(VOTES(0, 5, 0), 5, 1000, 801));
	assert_true(tier_is_confident(VOTES(0, 5, 0), 5, huge, huge / 5 * 4));
	assert_false(tier_is_confident(VOTES(0, 5, 0), 5, huge, huge / 5 * 4 + 1));
	assert_int_equal(tier_behaviour_permille(VOTES(0, 5, 0), 5, huge, huge / 5 * 4 + 1), 599);
}

static void a_confidence_is_between_0_and_1(void **state)
{
	assert_true(tier_confidence_reaches(VOTES(0, 0, 0), 0, 0, 0, 0));
	assert_true(tier_confidence_reaches(VOTES(0, 5, 0), 5, 1000, 0, 1000));
	assert_false(tier_confidence_reaches(VOTES(0, 5, 0), 5, 1000, 0, 1001));
	assert_false(tier_confidence_reaches(VOTES(0, 5, 0), 5, 1000, 0, ~0U));
}

int main(void)
{
	const struct CMUnitTest tier_votes[] = {
		cmocka_unit_test(a_vote_counts_for_the_observed_tier),
		cmocka_unit_test(a_value_above_two_counts_as_two),
		cmocka_unit_test(a_vote_count_does_not_overflow),
		cmocka_unit_test(the_tier_with_most_votes_dominates),
		cmocka_unit_test(the_higher_tier_wins_a_tie),
		cmocka_unit_test(without_votes_the_default_tier_dominates),
		cmocka_unit_test(tier_confidence_is_the_share_of_the_dominant_tier),
		cmocka_unit_test(fewer_than_three_observations_give_no_confidence),
		cmocka_unit_test(deviation_halves_the_confidence_at_most),
		cmocka_unit_test(without_an_average_stability_is_zero),
		cmocka_unit_test(no_votes_give_no_confidence),
		cmocka_unit_test(a_confidence_of_exactly_600_permille_is_enough),
		cmocka_unit_test(a_confidence_just_below_600_permille_is_not_enough),
		cmocka_unit_test(a_confidence_is_between_0_and_1),
	};

	return cmocka_run_group_tests(tier_votes, NULL, NULL);
}
