/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tiers: what a kind of task was learned to be, and how far to trust it. The
 * confidence is a ratio of two numbers of up to 107 bits and BPF has no type so
 * wide, so it is compared by cross-multiplication in two halves, and is exact.
 */
#include "core/hist.h"

enum tier {
	TIER_BATCH = 0,
	TIER_INTERACTIVE,
	TIER_LAT_CRITICAL,
	TIER_NR,
	TIER_DEFAULT = TIER_INTERACTIVE,
};

#define TIER_MIN_OBSERVATIONS	3
#define TIER_CONFIDENT_PERMILLE 600

struct tier_votes {
	u32 nr[TIER_NR];
};
_Static_assert(sizeof(struct tier_votes) == 12, "shared with BPF");

/* A value above the highest tier counts as the highest. */
static inline enum tier tier_of(u32 value)
{
	return value < TIER_NR ? (enum tier)value : TIER_LAT_CRITICAL;
}

static inline void tier_vote(struct tier_votes *v, u32 observed)
{
	u32 tier = tier_of(observed);

	if (v->nr[tier] < ~0U)
		v->nr[tier]++;
}

static inline u64 tier_votes_total(const struct tier_votes *v)
{
	return (u64)v->nr[TIER_BATCH] + v->nr[TIER_INTERACTIVE] + v->nr[TIER_LAT_CRITICAL];
}

/* The tier with most votes, the higher one on a tie; the default without votes. */
static inline enum tier tier_dominant(const struct tier_votes *v)
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

/* The full product of two 64-bit numbers: the upper half is returned. */
static inline u64 tier_multiply(u64 x, u64 y, u64 *ret_low)
{
	u64 x_high = x >> 32, x_low = (u32)x;
	u64 y_high = y >> 32, y_low = (u32)y;
	u64 low = x_low * y_low;
	u64 middle = x_high * y_low + (low >> 32);
	u64 carry = x_low * y_high + (u32)middle;

	*ret_low = (carry << 32) | (u32)low;
	return x_high * y_high + (middle >> 32) + (carry >> 32);
}

/* Is a x p at least b x q? */
static inline bool tier_product_reaches(u64 a, u64 p, u64 b, u64 q)
{
	u64 left_low, right_low;
	u64 left = tier_multiply(a, p, &left_low);
	u64 right = tier_multiply(b, q, &right_low);

	return left > right || (left == right && left_low >= right_low);
}

/*
 * Is the behavioural confidence at least this many per mille? With m of t votes,
 * average a and deviation d <= a the confidence is m/t x (2a - d)/2a, so that
 *
 *	m/t x (2a - d)/2a >= p/1000   is   a x (2000m - 2pt) >= d x 1000m.
 */
static inline bool tier_confidence_reaches(const struct tier_votes *v, u32 nr_observations,
					   u64 average, u64 deviation, u32 permille)
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
	return tier_product_reaches(average, votes - needed, deviation, votes / 2);
}

/* Is a profile good enough to be predicted and saved? */
static inline bool tier_is_confident(const struct tier_votes *v, u32 nr_observations, u64 average,
				     u64 deviation)
{
	return tier_confidence_reaches(v, nr_observations, average, deviation,
				       TIER_CONFIDENT_PERMILLE);
}

/* (7 x old + fresh) / 8, rounded down; the split keeps it from overflowing. */
static inline u64 tier_average(u64 old, u64 fresh)
{
	return 7 * (old / 8) + fresh / 8 + (7 * (old % 8) + fresh % 8) / 8;
}

/* A burst so long is work; a shorter one may be an answer to somebody. */
#define TIER_WORK_NS	    NSEC_PER_MSEC
/* Woken a hundred times a second, and waking others as often. */
#define TIER_CRITICAL_SCORE 12

/* What a thread does, as far as its tier depends on it. */
struct tier_view {
	u64 runtime_avg_ns; /* between two sleeps */
	u64 sleep_avg_ns;
	u64 woken_hz;
	u64 waking_hz; /* how often it wakes others */
	u32 partners;  /* criticality of those who wake it and whom it wakes */
	u32 pad;
};

/* How much a thread is in the middle of things, in powers of two. */
static inline u32 tier_criticality(u64 woken_hz, u64 waking_hz)
{
	return hist_log2(woken_hz + 1) + hist_log2(waking_hz + 1);
}

/* Who works for the critical is critical, half as much. */
static inline u32 tier_score(const struct tier_view *view)
{
	return tier_criticality(view->woken_hz, view->waking_hz) + view->partners / 2;
}

/* What a thread with such a behaviour is. */
static inline enum tier tier_observe(const struct tier_view *view)
{
	if (view->runtime_avg_ns >= TIER_WORK_NS)
		return view->runtime_avg_ns >= view->sleep_avg_ns ? TIER_BATCH : TIER_INTERACTIVE;
	return tier_score(view) >= TIER_CRITICAL_SCORE ? TIER_LAT_CRITICAL : TIER_INTERACTIVE;
}

/* User space only: the behavioural confidence, rounded down, for display. */
u32 tier_behaviour_permille(const struct tier_votes *v, u32 nr_observations, u64 average,
			    u64 deviation);

/* User space only: for people and files. */
const char *tier_label(u32 tier);
