/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Collective calls that no sync has covered yet. When a sync covers them, each call yields one
 * sample. The memory is fixed, so not every entry time is stored. The first COLLECTIVES_EXACT
 * calls of an operation each have their own entry time. After that, each doubling of the number
 * of calls (an octave) has COLLECTIVES_OCTAVE entry times at equal distances, and each of them
 * stands for the calls up to the next stored one. The number of samples is exact. A duration is
 * too long by at most the time in which an eighth of the calls were made. After the last octave,
 * the last entry time stands for all later calls. Compiled for BPF and user space.
 */
#include "abi/runtime.h"

#define COLLECTIVES_EXACT   16
#define COLLECTIVES_OCTAVE  8
#define COLLECTIVES_OCTAVES 8
#define COLLECTIVES_KEPT    (COLLECTIVES_EXACT + COLLECTIVES_OCTAVE * COLLECTIVES_OCTAVES)

/* The counts are atomic, so that each call is in the samples of exactly one sync. */
struct open_collectives {
	u64 nr[COLLECTIVE_NR];
	u64 entered_ns[COLLECTIVE_NR][COLLECTIVES_KEPT];
};

/* The octave of a call; 0 for calls that have their own entry time. */
static inline u32 collectives_octave(u64 call)
{
	u32 octave = 0;

	for (u32 i = 0; i < COLLECTIVES_OCTAVES; i++)
		octave += call >= (u64)COLLECTIVES_EXACT << i;
	return octave;
}

/* The slot for the entry time of a call (from 0); COLLECTIVES_KEPT if the time is not stored. */
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

/* The number of calls, out of `nr`, that the entry time in a slot stands for. */
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
