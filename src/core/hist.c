/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/hist.h"

/* Geometric centers of the buckets in the highest octave. */
static const u64 hist_middles_ns[4] = {
	8933439345993ULL,
	10623709631701ULL,
	12633791081741ULL,
	15024194243865ULL,
};

void hist_add(struct hist *to, const struct hist *from)
{
	if (from->count == 0)
		return;
	if (to->count == 0 || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
	for (u32 i = 0; i < HIST_SLOTS; i++)
		to->buckets[i] += from->buckets[i];
}

/* The value, or the nearest one of the slot. */
static u64 nearest_in_slot(u64 value, u32 slot)
{
	u64 least = slot ? hist_bounds_ns[slot - 1] + 1 : 0;

	if (value < least)
		return least;
	return value < hist_bounds_ns[slot] ? value : hist_bounds_ns[slot];
}

/* Machines that order memory weakly show a value in its bucket before it is in the bounds. */
struct hist hist_of_shared(const struct shared_hist *shared)
{
	u64 min = ~shared->inverted_min, max = shared->max;
	struct hist hist = { .sum = shared->sum };
	u32 first = HIST_SLOTS, last = 0;

	for (u32 i = 0; i < HIST_SLOTS; i++) {
		hist.count += hist.buckets[i] = shared->buckets[i];
		if (!hist.buckets[i])
			continue;
		first = i < first ? i : first;
		last = i;
	}
	if (!hist.count || (!shared->inverted_min && !max))
		return (struct hist){};
	min = nearest_in_slot(min, first);
	max = nearest_in_slot(max, last);
	hist.min = min < max ? min : max;
	hist.max = min < max ? max : min;
	return hist;
}

int hist_subtract(const struct hist *now, const struct hist *before, struct hist *ret)
{
	u32 first = HIST_SLOTS, last = 0;

	if (now->count < before->count || now->sum < before->sum)
		return -1;
	for (u32 i = 0; i < HIST_SLOTS; i++)
		if (now->buckets[i] < before->buckets[i])
			return -1;
	*ret = (struct hist){ .count = now->count - before->count, .sum = now->sum - before->sum };
	for (u32 i = 0; i < HIST_SLOTS; i++) {
		ret->buckets[i] = now->buckets[i] - before->buckets[i];
		if (!ret->buckets[i])
			continue;
		first = i < first ? i : first;
		last = i;
	}
	if (first == HIST_SLOTS)
		return 0;
	ret->min = first ? hist_bounds_ns[first - 1] + 1 : 0;
	ret->min = ret->min > now->min ? ret->min : now->min;
	ret->max = hist_bounds_ns[last] < now->max ? hist_bounds_ns[last] : now->max;
	return 0;
}

u64 hist_mean(const struct hist *h)
{
	return h->count ? h->sum / h->count : 0;
}

u64 hist_middle(u32 slot)
{
	u32 bucket = slot - 1;
	u32 halvings;

	if (slot == 0)
		return 0;
	if (slot >= HIST_OVERFLOW)
		return ~0ULL;
	halvings = HIST_OCTAVES - 1 - bucket / 4;
	return (hist_middles_ns[bucket % 4] + ((1ULL << halvings) >> 1)) >> halvings;
}

u64 hist_quantile(const struct hist *h, u32 permille)
{
	u64 rank, value, seen;
	u32 slot = 0;

	if (h->count == 0)
		return 0;
	if (permille > 1000)
		permille = 1000;
	rank = h->count / 1000 * permille + h->count % 1000 * permille / 1000;
	if (rank >= h->count)
		rank = h->count - 1;
	for (seen = h->buckets[0]; seen <= rank && slot < HIST_OVERFLOW; seen += h->buckets[slot])
		slot++;
	value = hist_middle(slot);
	if (value < h->min)
		return h->min;
	return value > h->max ? h->max : value;
}
