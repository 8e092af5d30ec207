/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Distributions of durations in fixed memory. Bucket i holds what lies in
 * (2^((i-1)/4), 2^(i/4)] seconds, as Prometheus native histograms of schema 2
 * have it, so two of them add up and exporting loses nothing. Values are
 * nanoseconds; count, sum, min and max are exact.
 *
 * Slot 0 is the zero bucket, slots 1 to HIST_SLOTS - 2 are the schema's buckets
 * from i = -119 (1 ns) to 56 (2^14 s), the last slot is all that is longer.
 * All zero is an empty distribution, as a fresh BPF map value is. Recording is
 * plain arithmetic: in BPF keep one per CPU and add them up when reading.
 */
#include "abi/types.h"

#define HIST_OCTAVES	   44
#define HIST_SLOTS	   (4 * HIST_OCTAVES + 2)
#define HIST_OVERFLOW	   (HIST_SLOTS - 1)
#define HIST_SCHEMA	   2
/* The schema's index i of a slot is slot - HIST_SCHEMA_OFFSET. */
#define HIST_SCHEMA_OFFSET 120

struct hist {
	u64 count;
	u64 sum;
	u64 min; /* undefined while count is 0 */
	u64 max;
	u64 buckets[HIST_SLOTS];
};
_Static_assert(sizeof(struct hist) == 32 + 8 * HIST_SLOTS, "shared with BPF");

/*
 * Upper bounds, floor(10^9 x 2^(i/4)) ns. The four of the highest octave give
 * all others, as halving and rounding down commute; and as values are whole,
 * comparing with the rounded bound is exact.
 */
#define HIST_OCTAVE(k)                                                                             \
	9741984686102ULL >> (k), 11585237502960ULL >> (k), 13777246867516ULL >> (k),               \
		16384000000000ULL >> (k)

static const u64 hist_bounds_ns[HIST_SLOTS] = {
	/* clang-format off */
	0,
	HIST_OCTAVE(43), HIST_OCTAVE(42), HIST_OCTAVE(41), HIST_OCTAVE(40),
	HIST_OCTAVE(39), HIST_OCTAVE(38), HIST_OCTAVE(37), HIST_OCTAVE(36),
	HIST_OCTAVE(35), HIST_OCTAVE(34), HIST_OCTAVE(33), HIST_OCTAVE(32),
	HIST_OCTAVE(31), HIST_OCTAVE(30), HIST_OCTAVE(29), HIST_OCTAVE(28),
	HIST_OCTAVE(27), HIST_OCTAVE(26), HIST_OCTAVE(25), HIST_OCTAVE(24),
	HIST_OCTAVE(23), HIST_OCTAVE(22), HIST_OCTAVE(21), HIST_OCTAVE(20),
	HIST_OCTAVE(19), HIST_OCTAVE(18), HIST_OCTAVE(17), HIST_OCTAVE(16),
	HIST_OCTAVE(15), HIST_OCTAVE(14), HIST_OCTAVE(13), HIST_OCTAVE(12),
	HIST_OCTAVE(11), HIST_OCTAVE(10), HIST_OCTAVE(9), HIST_OCTAVE(8),
	HIST_OCTAVE(7), HIST_OCTAVE(6), HIST_OCTAVE(5), HIST_OCTAVE(4),
	HIST_OCTAVE(3), HIST_OCTAVE(2), HIST_OCTAVE(1), HIST_OCTAVE(0),
	~0ULL,
	/* clang-format on */
};

/* floor(log2(x)) of x > 0: smear the highest bit downwards, count the bits below it. */
static inline u32 hist_log2(u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	x >>= 1;
	x -= (x >> 1) & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (u32)((x * 0x0101010101010101ULL) >> 56);
}

/*
 * The slot of a value. A power of two spans five slots at most, and 2^n starts
 * in slot 4n + 1, so four comparisons settle it. They are subtractions whose
 * sign bit counts, since every branch would double the paths the verifier walks.
 */
static inline u32 hist_index(u64 x)
{
	const u64 *bound;
	u64 slot;

	if (x == 0)
		return 0;
	slot = 4ULL * hist_log2(x) + 1;
	/* The check below must stay a check of this very number, or the verifier cannot use it. */
	__asm__ volatile("" : "+r"(slot));
	if (slot > HIST_OVERFLOW - 4)
		return HIST_OVERFLOW;
	bound = &hist_bounds_ns[slot];
	for (u32 i = 0; i < 4; i++)
		slot += (bound[i] - x) >> 63;
	return (u32)slot;
}

/* A value that stands for `nr` of them. */
static inline void hist_record_times(struct hist *h, u64 x, u64 nr)
{
	u32 slot = hist_index(x);

	if (h->count == 0 || x < h->min)
		h->min = x;
	if (x > h->max)
		h->max = x;
	h->count += nr;
	h->sum += x * nr;
	h->buckets[slot] += nr;
}

static inline void hist_record(struct hist *h, u64 x)
{
	hist_record_times(h, x, 1);
}

/* User space only. */
void hist_add(struct hist *to, const struct hist *from);

/*
 * What was recorded since `before`, which is an earlier look at the same distribution.
 * Of min and max only the bucket is known then, so they are its bounds where those of all
 * time do not tell more. -1, and nothing written, when it cannot be an earlier look.
 */
int hist_subtract(const struct hist *now, const struct hist *before, struct hist *ret);

u64 hist_mean(const struct hist *h);

/* The geometric middle of a slot to the nearest ns; the ends have none of their own. */
u64 hist_middle(u32 slot);

/*
 * The value of rank min(floor(q x count / 1000), count - 1) among the sorted
 * values, 0 when empty. The answer is off by at most 2^(1/8) - 1 < 9.1 % of the
 * exact one, plus the half nanosecond of rounding that shows below 1 us. Beyond
 * the last bound only the maximum is known.
 */
u64 hist_quantile(const struct hist *h, u32 permille);
