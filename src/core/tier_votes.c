/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/tier_votes.h"

typedef unsigned __int128 u128;

void tier_vote(struct tier_votes *v, u32 observed)
{
	u32 tier = tier_of(observed);

	if (v->nr[tier] < ~0U)
		v->nr[tier]++;
}

u64 tier_votes_total(const struct tier_votes *v)
{
	return (u64)v->nr[TIER_BATCH] + v->nr[TIER_INTERACTIVE] + v->nr[TIER_LAT_CRITICAL];
}

enum tier tier_dominant(const struct tier_votes *v)
{
	enum tier best = TIER_BATCH;

	if (tier_votes_total(v) == 0)
		return TIER_DEFAULT;
	if (v->nr[TIER_INTERACTIVE] >= v->nr[best])
		best = TIER_INTERACTIVE;
	if (v->nr[TIER_LAT_CRITICAL] >= v->nr[best])
		best = TIER_LAT_CRITICAL;
	return best;
}

u32 tier_confidence_permille(const struct tier_votes *v)
{
	u64 total = tier_votes_total(v);

	return total ? (u32)(1000ULL * v->nr[tier_dominant(v)] / total) : 0;
}

/*
 * With m of t votes, average a and deviation d <= a the confidence is m/t x (2a - d)/2a, so that
 *
 *	m/t x (2a - d)/2a >= p/1000   is   a x (2000m - 2pt) >= d x 1000m.
 */
bool tier_confidence_reaches(const struct tier_votes *v, u32 nr_observations, u64 average,
			     u64 deviation, u32 permille)
{
	u64 votes = 2000ULL * v->nr[tier_dominant(v)];
	u64 needed = 2ULL * permille * tier_votes_total(v);

	if (permille == 0)
		return true;
	if (permille > 1000 || nr_observations < TIER_MIN_OBSERVATIONS)
		return false;
	if (votes == 0 || votes < needed)
		return false;
	/* Stability is never below 0, and is 0 without an average. */
	if (average == 0)
		average = deviation = 1;
	if (deviation > average)
		deviation = average;
	return (u128)average * (votes - needed) >= (u128)deviation * (votes / 2);
}

bool tier_is_confident(const struct tier_votes *v, u32 nr_observations, u64 average, u64 deviation)
{
	return tier_confidence_reaches(v, nr_observations, average, deviation,
				       TIER_CONFIDENT_PERMILLE);
}

/* Computed bit by bit with the exact comparison, so that it always agrees with the decision. */
u32 tier_behaviour_permille(const struct tier_votes *v, u32 nr_observations, u64 average,
			    u64 deviation)
{
	u32 permille = 0;

	for (u32 bit = 512; bit > 0; bit >>= 1)
		if (tier_confidence_reaches(v, nr_observations, average, deviation, permille + bit))
			permille += bit;
	return permille;
}
