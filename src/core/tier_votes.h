/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Votes: the observed tiers of a profile, and the confidence in them. User space only. The
 * confidence is a ratio of two numbers of up to 107 bits. It is compared by
 * cross-multiplication, so the comparison is exact.
 */
#include "core/tier.h"

#define TIER_MIN_OBSERVATIONS	3
#define TIER_CONFIDENT_PERMILLE 600

struct tier_votes {
	u32 nr[TIER_NR];
};

void tier_vote(struct tier_votes *v, u32 observed);
u64 tier_votes_total(const struct tier_votes *v);

/* The tier with the most votes; on a tie the higher tier; without votes the default tier. */
enum tier tier_dominant(const struct tier_votes *v);

/* The tier confidence: the share of the dominant tier in all votes, rounded down for display. */
u32 tier_confidence_permille(const struct tier_votes *v);

/* True if the behavioral confidence is at least `permille`. */
bool tier_confidence_reaches(const struct tier_votes *v, u32 nr_observations, u64 average,
			     u64 deviation, u32 permille);

/* True if a profile is good enough to be predicted and saved. */
bool tier_is_confident(const struct tier_votes *v, u32 nr_observations, u64 average, u64 deviation);

/* The behavioral confidence, rounded down for display. */
u32 tier_behaviour_permille(const struct tier_votes *v, u32 nr_observations, u64 average,
			    u64 deviation);
