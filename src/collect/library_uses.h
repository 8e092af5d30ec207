/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string.h>
#include "collect/library.h"

#define USE_WORDS (LIBRARY_MAX / 64)

_Static_assert(LIBRARY_MAX % 64 == 0, "struct uses has whole words");

/* The libraries that a process uses, one bit per slot. */
struct uses {
	u64 word[USE_WORDS];
};

static inline bool uses_has(const struct uses *uses, u32 slot)
{
	return uses->word[slot / 64] >> slot % 64 & 1;
}

static inline void uses_add(struct uses *uses, u32 slot)
{
	uses->word[slot / 64] |= 1ULL << slot % 64;
}

static inline void uses_remove(struct uses *uses, u32 slot)
{
	uses->word[slot / 64] &= ~(1ULL << slot % 64);
}

static inline void uses_merge(struct uses *uses, const struct uses *more)
{
	for (u32 i = 0; i < USE_WORDS; i++)
		uses->word[i] |= more->word[i];
}

static inline bool uses_none(const struct uses *uses)
{
	static const struct uses none;

	return !memcmp(uses, &none, sizeof(none));
}

static inline bool uses_any(const struct uses *uses, const struct uses *of)
{
	u64 both = 0;

	for (u32 i = 0; i < USE_WORDS; i++)
		both |= uses->word[i] & of->word[i];
	return both;
}
