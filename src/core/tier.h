/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tiers: classes of threads by their behavior. See core/tier_votes.h for the confidence. */
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

/* (7 x old + fresh) / 8, rounded down. Dividing first avoids an overflow. */
static inline u64 tier_average(u64 old, u64 fresh)
{
	return 7 * (old / 8) + fresh / 8 + (7 * (old % 8) + fresh % 8) / 8;
}

/* A burst of at least this length is work. A shorter one may be a reply to another thread. */
#define TIER_WORK_NS	    NSEC_PER_MSEC
/* Reached by a thread that is woken 63 times per second and wakes other threads as often. */
#define TIER_CRITICAL_SCORE 12

/* The behavior of a thread on which its tier depends. */
struct tier_view {
	u64 runtime_avg_ns; /* CPU time between two sleeps */
	u64 sleep_avg_ns;
	u64 woken_hz;
	u64 waking_hz; /* how often it wakes other threads */
	u32 partners;  /* criticality of the threads that wake it or that it wakes */
	u32 pad;
};

/* How often a thread is woken and wakes other threads, as a sum of logarithms to base 2. */
static inline u32 tier_criticality(u64 woken_hz, u64 waking_hz)
{
	return hist_log2(woken_hz + 1) + hist_log2(waking_hz + 1);
}

/* A thread inherits half of the criticality of its partners. */
static inline u32 tier_score(const struct tier_view *view)
{
	return tier_criticality(view->woken_hz, view->waking_hz) + view->partners / 2;
}

/* The tier of a thread with this behavior. */
static inline enum tier tier_observe(const struct tier_view *view)
{
	if (view->runtime_avg_ns >= TIER_WORK_NS)
		return view->runtime_avg_ns >= view->sleep_avg_ns ? TIER_BATCH : TIER_INTERACTIVE;
	return tier_score(view) >= TIER_CRITICAL_SCORE ? TIER_LAT_CRITICAL : TIER_INTERACTIVE;
}

/* User space only: the name for output and files. */
const char *tier_label(u32 tier);
