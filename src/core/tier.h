/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tiers: what a thread is by its behaviour. core/tier_votes.h says how far to trust that. */
#include "core/hist.h"

enum tier {
	TIER_BATCH = 0,
	TIER_INTERACTIVE,
	TIER_LAT_CRITICAL,
	TIER_NR,
	TIER_DEFAULT = TIER_INTERACTIVE,
};

/* A value above the highest tier counts as the highest. */
static inline enum tier tier_of(u32 value)
{
	return value < TIER_NR ? (enum tier)value : TIER_LAT_CRITICAL;
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

/* User space only: for people and files. */
const char *tier_label(u32 tier);
