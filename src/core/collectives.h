/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Collective calls that no sync has covered yet. Every one of them gives a sample when a
 * sync does, however many there are, from a fixed number of kept times: the first
 * COLLECTIVES_EXACT calls of an operation each have their own. After that each doubling of
 * the number of calls has COLLECTIVES_OCTAVE times at equal distances, and each stands for
 * the calls up to the next one. The number of samples is exact, and a duration is too long by
 * at most the time in which an eighth of the calls were made. Beyond the last doubling
 * the last time stands for all that follow. Compiled for BPF and user space.
 */
#include "abi/runtime.h"

#define COLLECTIVES_EXACT   16
#define COLLECTIVES_OCTAVE  8
#define COLLECTIVES_OCTAVES 8
#define COLLECTIVES_KEPT    (COLLECTIVES_EXACT + COLLECTIVES_OCTAVE * COLLECTIVES_OCTAVES)

/* Counts are atomic, so that each call is in exactly one sync's samples. */
struct open_collectives {
	u64 nr[COLLECTIVE_NR];
	u64 entered_ns[COLLECTIVE_NR][COLLECTIVES_KEPT];
};

/* The octave of a call: 0 while each has its own time. */
static inline u32 collectives_octave(u64 call)
{
	u32 octave = 0;

	for (u32 i = 0; i < COLLECTIVES_OCTAVES; i++)
		octave += call >= (u64)COLLECTIVES_EXACT << i;
	return octave;
}

/* Where the time of a call goes, counted from 0; COLLECTIVES_KEPT when another stands for it. */
static inline u32 collectives_slot(u64 call)
{
	u32 octave = collectives_octave(call);
	u64 begin = (u64)COLLECTIVES_EXACT << octave >> 1, place = call - begin;

	if (!octave)
		return (u32)call;
	if (call >= (u64)COLLECTIVES_EXACT << COLLECTIVES_OCTAVES || place & ((1U << octave) - 1))
		return COLLECTIVES_KEPT;
	return COLLECTIVES_EXACT + (octave - 1) * COLLECTIVES_OCTAVE + (u32)(place >> octave);
}

/* How many of `nr` calls the time in a slot stands for. */
static inline u64 collectives_weight(u32 slot, u64 nr)
{
	u32 place = slot - COLLECTIVES_EXACT, octave = place / COLLECTIVES_OCTAVE + 1;
	u64 first, left;

	if (slot < COLLECTIVES_EXACT)
		return slot < nr;
	first = ((u64)COLLECTIVES_EXACT << octave >> 1) +
		((u64)(place % COLLECTIVES_OCTAVE) << octave);
	left = first < nr ? nr - first : 0;
	if (slot == COLLECTIVES_KEPT - 1 || left < 1ULL << octave)
		return left;
	return 1ULL << octave;
}
