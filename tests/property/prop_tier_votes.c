/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include <math.h>

#include "core/tier_votes.h"

typedef unsigned __int128 u128;

struct profile {
	struct tier_votes votes;
	u32 nr_observations;
	u64 average;
	u64 deviation;
};

static u64 largest_of(const struct tier_votes *v)
{
	u64 largest = v->nr[0];

	for (u32 i = 1; i < TIER_NR; i++)
		largest = v->nr[i] > largest ? v->nr[i] : largest;
	return largest;
}

/* The deviation of many profiles is at most 2 ns away from where the decision changes. */
static struct profile random_profile(struct random *r)
{
	struct profile p = {
		.votes = { { random_any32(r), random_any32(r), random_any32(r) } },
		.nr_observations = random_below(r, 8) ? 3 + random_below(r, 100) : random_any32(r),
		.average = random_any(r),
		.deviation = random_any(r),
	};
	u64 largest, total;

	if (random_below(r, 3))
		for (u32 i = 0; i < TIER_NR; i++)
			p.votes.nr[i] = random_below(r, 12);
	largest = largest_of(&p.votes);
	total = tier_votes_total(&p.votes);
	if (random_below(r, 2) && 10 * largest > 6 * total) {
		u64 edge = (u64)((u128)p.average * (10 * largest - 6 * total) / (5 * largest));

		p.deviation = edge + random_below(r, 5) - 2;
	}
	return p;
}

/* The confidence as a ratio of two integers. */
static void exact_confidence(const struct profile *p, u128 *ret_above, u128 *ret_below)
{
	u64 total = tier_votes_total(&p->votes);
	u128 average = p->average ? p->average : 1;
	u128 deviation = p->average && p->deviation < p->average ? p->deviation : average;

	*ret_above = 0;
	*ret_below = 1;
	if (p->nr_observations < 3 || total == 0)
		return;
	*ret_above = largest_of(&p->votes) * (2 * average - deviation);
	*ret_below = total * 2 * average;
}

static bool the_decision_is_exact_holds(struct random *r)
{
	struct profile p = random_profile(r);
	u128 above, below;

	exact_confidence(&p, &above, &below);
	return tier_is_confident(&p.votes, p.nr_observations, p.average, p.deviation) ==
	       (5 * above >= 3 * below);
}
PROPERTY(the_decision_is_exact, 1)

static bool the_reported_confidence_is_rounded_down_holds(struct random *r)
{
	struct profile p = random_profile(r);
	u32 shown = tier_behaviour_permille(&p.votes, p.nr_observations, p.average, p.deviation);
	u128 above, below;

	exact_confidence(&p, &above, &below);
	return shown == (u32)(1000 * above / below);
}
PROPERTY(the_reported_confidence_is_rounded_down, 1)

/* The reference semantics as specified, in floating point. */
static bool confidence_agrees_with_floating_point_holds(struct random *r)
{
	struct profile p = random_profile(r);
	long double total = tier_votes_total(&p.votes);
	long double tier = total > 0 ? largest_of(&p.votes) / total : 0;
	long double stability = p.average ? 1 - fminl((long double)p.deviation / p.average, 1) : 0;
	long double confidence = p.nr_observations < 3 ? 0 : tier * (0.5L + 0.5L * stability);
	bool confident = tier_is_confident(&p.votes, p.nr_observations, p.average, p.deviation);

	/*
	 * This close to the threshold, floating point is not exact enough; the
	 * exact test covers it.
	 */
	if (fabsl(confidence - 0.6L) < 1e-15L)
		return true;
	return confident == (confidence >= 0.6L) &&
	       fabsl(tier_confidence_permille(&p.votes) / 1000.0L - tier) <= 0.001L;
}
PROPERTY(confidence_agrees_with_floating_point, 1)

static bool the_dominant_tier_has_most_votes_holds(struct random *r)
{
	struct tier_votes v = random_profile(r).votes;
	u32 dominant = tier_dominant(&v);

	if (tier_votes_total(&v) == 0)
		return dominant == TIER_DEFAULT;
	for (u32 i = 0; i < TIER_NR; i++)
		if (v.nr[i] > v.nr[dominant] || (v.nr[i] == v.nr[dominant] && i > dominant))
			return false;
	return true;
}
PROPERTY(the_dominant_tier_has_most_votes, 1)

static bool a_vote_adds_one_to_one_tier_holds(struct random *r)
{
	struct tier_votes before = random_profile(r).votes, after = before;
	u32 observed = random_below(r, 2) ? random_below(r, 4) : random_any32(r);
	u32 tier = observed > 2 ? 2 : observed;

	tier_vote(&after, observed);
	for (u32 i = 0; i < TIER_NR; i++)
		if (after.nr[i] - before.nr[i] != (i == tier && before.nr[i] != ~0U))
			return false;
	return true;
}
PROPERTY(a_vote_adds_one_to_one_tier, 1)

int main(void)
{
	const struct CMUnitTest tier_votes_properties[] = {
		cmocka_unit_test(the_decision_is_exact),
		cmocka_unit_test(the_reported_confidence_is_rounded_down),
		cmocka_unit_test(confidence_agrees_with_floating_point),
		cmocka_unit_test(the_dominant_tier_has_most_votes),
		cmocka_unit_test(a_vote_adds_one_to_one_tier),
	};

	return cmocka_run_group_tests(tier_votes_properties, NULL, NULL);
}
