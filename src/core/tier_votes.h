/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Votes: what a kind of task was observed to be, and how far to trust it. User space
 * only. The confidence is a ratio of two numbers of up to 107 bits, so it is compared
 * by cross-multiplication, and is exact.
 */
#include "core/tier.h"

#define TIER_MIN_OBSERVATIONS	3
#define TIER_CONFIDENT_PERMILLE 600

struct tier_votes {
	u32 nr[TIER_NR];
};

void tier_vote(struct tier_votes *v, u32 observed);
u64 tier_votes_total(const struct tier_votes *v);

/* The tier with most votes, the higher one on a tie; the default without votes. */
enum tier tier_dominant(const struct tier_votes *v);

/* The tier confidence: the share of the dominant tier in all votes, rounded down, for display. */
u32 tier_confidence_permille(const struct tier_votes *v);

/* Is the behavioural confidence at least this many per mille? */
bool tier_confidence_reaches(const struct tier_votes *v, u32 nr_observations, u64 average,
			     u64 deviation, u32 permille);

/* Is a profile good enough to be predicted and saved? */
bool tier_is_confident(const struct tier_votes *v, u32 nr_observations, u64 average, u64 deviation);

/* The behavioural confidence, rounded down, for display. */
u32 tier_behaviour_permille(const struct tier_votes *v, u32 nr_observations, u64 average,
			    u64 deviation);
