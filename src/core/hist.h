/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Distributions of durations in fixed memory. Bucket i counts the values in
 * (2^((i-1)/4), 2^(i/4)] seconds, the same as Prometheus native histograms of schema 2.
 * Distributions can be added, and the export to Prometheus is lossless. Values are in
 * nanoseconds. Count, sum, min and max are exact.
 *
 * Slot 0 is the zero bucket. Slots 1 to HIST_SLOTS - 2 are the buckets of the schema
 * from i = -119 (1 ns) to 56 (2^14 s). The last slot counts all longer values. A
 * distribution with all bytes zero is empty, so a new BPF map value needs no setup.
 *
 * hist_record() is not atomic: a `struct hist` has one writer at a time. A `struct
 * shared_hist` may have many, on all CPUs.
 */
#include <stdbool.h>
#include "abi/types.h"

#define HIST_OCTAVES	   44
#define HIST_SLOTS	   (4 * HIST_OCTAVES + 2)
#define HIST_OVERFLOW	   (HIST_SLOTS - 1)
#define HIST_SCHEMA	   2
/* The schema index i of a slot is slot - HIST_SCHEMA_OFFSET. */
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
 * Upper bounds, floor(10^9 x 2^(i/4)) ns. All bounds are the four bounds of the highest
 * octave shifted right, because halving and rounding down commute. Values are integers,
 * so comparing with a bound that is rounded down is exact.
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

/* floor(log2(x)) for x > 0: sets all bits below the highest one, then counts them. */
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
 * The slot of a value. The values from 2^n to 2^(n+1) lie in at most five slots, and 2^n
 * is in slot 4n + 1, so four comparisons are enough. Each comparison is a
 * subtraction whose sign bit is added, because each branch would double the number of
 * paths that the verifier checks.
 */
static inline u32 hist_index(u64 x)
{
	const u64 *bound;
	u64 slot;

	if (x == 0)
		return 0;
	slot = 4ULL * hist_log2(x) + 1;
	/* Keeps the compiler from checking a different value, which the verifier could not use. */
	__asm__ volatile("" : "+r"(slot));
	if (slot > HIST_OVERFLOW - 4)
		return HIST_OVERFLOW;
	bound = &hist_bounds_ns[slot];
	for (u32 i = 0; i < 4; i++)
		slot += (bound[i] - x) >> 63;
	return (u32)slot;
}

/* Records the same value `nr` times. */
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

/*
 * A distribution that several CPUs record into at the same time, without a lock. Its count is
 * the sum of its buckets. The minimum is kept inverted, because the inverse of a minimum only
 * grows, from 0 on. A copy that is made while values are recorded can have some of them in the
 * buckets only, in the sum only or in the bounds only; the next one has all.
 */
struct shared_hist {
	u64 buckets[HIST_SLOTS];
	u64 sum;
	u64 max;
	u64 inverted_min;
};
_Static_assert(sizeof(struct shared_hist) == 24 + 8 * HIST_SLOTS, "shared with BPF");

/* A try fails only if another CPU raises the same bound at this moment. */
#define SHARED_HIST_TRIES 4

/* Raises a bound to a value. False if other CPUs have raised it in each of the tries. */
static inline bool shared_hist_raise(u64 *bound, u64 value)
{
	u64 known;

	/* One branch for each try, because the verifier would follow all of them. */
	for (u32 i = 0; i < SHARED_HIST_TRIES; i++) {
		known = *(volatile u64 *)bound;
		if (known >= value)
			return true;
		__sync_val_compare_and_swap(bound, known, value);
	}
	return *(volatile u64 *)bound >= value;
}

/*
 * Records the same value `nr` times. Count, sum and buckets are exact. False if the minimum or the
 * maximum may not be: the value would be a new one, and other CPUs got ahead of it in every try.
 */
static inline bool shared_hist_record_times(struct shared_hist *h, u64 x, u64 nr)
{
	bool is_min_exact = shared_hist_raise(&h->inverted_min, ~x);
	bool is_max_exact = shared_hist_raise(&h->max, x);

	__sync_fetch_and_add(&h->sum, x * nr);
	__sync_fetch_and_add(&h->buckets[hist_index(x)], nr);
	return is_min_exact && is_max_exact;
}

/* User space only. */
void hist_add(struct hist *to, const struct hist *from);

/*
 * The distribution that a copy of a shared one contains; empty if its first value is only partly
 * visible. Minimum and maximum are in the first and in the last bucket with values.
 */
struct hist hist_of_shared(const struct shared_hist *shared);

/*
 * Computes what was recorded since `before`, an earlier copy of the same distribution. Only
 * the buckets of min and max are known. They become the bounds of these buckets, limited by
 * min and max of `now`. Returns -1 and writes nothing if `before` cannot be an earlier copy.
 */
int hist_subtract(const struct hist *now, const struct hist *before, struct hist *ret);

u64 hist_mean(const struct hist *h);

/* The geometric center of a slot, to the nearest ns; 0 for the first slot, ~0 for the last. */
u64 hist_middle(u32 slot);

/*
 * The value of rank min(floor(permille x count / 1000), count - 1) among the sorted values;
 * 0 if empty. The error is at most 2^(1/8) - 1 < 9.1 % of the exact value, plus half a
 * nanosecond of rounding, which matters below 1 us. Beyond the last bound, the result is
 * the maximum.
 */
u64 hist_quantile(const struct hist *h, u32 permille);
