/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the steps of a rank from its syncs and collectives. A cycle ends with a sync that
 * follows at least one launch. A cycle has a signature (its look): the number of launches,
 * and whether it had a collective or a copy to the GPU. The shortest sequence of
 * signatures that repeats is the step.
 *
 * Cycles wait in a ring until they are judged. A sequence is accepted when it has repeated
 * long enough that a shorter sequence cannot be a part of a longer one. It then also
 * applies to the cycles in which it was found. From then on, each cycle is either the next
 * one of the sequence or an extra cycle, for example logging. An extra cycle makes the
 * step longer and is not a step itself. A short evaluation consists of extra cycles, too.
 * If no cycle fits for a long time, the sequence is dropped and a new one is searched. A
 * young sequence is dropped sooner, so that the warm-up of a job does not matter.
 */
#include <stdbool.h>
#include "core/hist.h"

#define STEP_PERIOD_MAX 5  /* the largest number of cycles in a step */
#define STEP_RING	16 /* a power of two, at least 3 x STEP_PERIOD_MAX */
#define STEP_SURE	8  /* repeating cycles that are needed: this many, or three periods */
#define STEP_BETWEEN	2  /* extra cycles that a timed step may have */
#define STEP_DOUBT_MIN	16 /* extra cycles after which a young sequence is dropped */
#define STEP_DOUBT_MAX	64 /* extra cycles after which an old sequence is dropped */
#define STEP_PATTERN	8  /* a power of two, at least STEP_PERIOD_MAX */
#define STEP_JUDGE_MAX	2  /* cycles judged per sync; more than one, to catch up */

#define LOOK_COLLECTIVE 0x80
#define LOOK_COPY	0x40
#define LOOK_LAUNCHES	0x3f /* log2 of the number of launches, times four */
#define LOOK_NEAR	1    /* a difference in LOOK_LAUNCHES that is ignored */

struct step_state {
	u64 nr_cycles;
	u64 nr_judged;	 /* all cycles before this one are judged */
	u64 nr_launches; /* at the end of the last cycle, as nr_copies */
	u64 nr_copies;
	u64 ended_ns; /* end of the last step; 0 if no step ended */
	u64 nr_steps;
	u64 ends_ns[STEP_RING];
	u8 looks[STEP_RING];
	u8 runs[STEP_PATTERN]; /* runs[p]: cycles in a row that were like the cycle p before */
	u8 pattern[STEP_PATTERN];
	u16 nr_between;	   /* extra cycles since the last step */
	u8 nr_fits;	   /* cycles that fit since the pattern is known, up to STEP_DOUBT_MAX */
	u8 period;	   /* cycles in the pattern; 0 while no pattern is known */
	u8 place;	   /* the position of the next cycle in the pattern */
	u8 had_collective; /* since the last cycle */
	u8 pad[2];
};

static inline u8 step_look(u64 nr_launches, bool copied, bool reduced)
{
	u32 log2 = hist_log2(nr_launches | 1);
	/* The two bits below the highest one. */
	u32 fraction = (u32)((nr_launches << 2) >> log2) & 3;
	u32 launches = 4 * log2 + fraction;

	if (launches > LOOK_LAUNCHES)
		launches = LOOK_LAUNCHES;
	return (u8)(launches | (copied ? LOOK_COPY : 0) | (reduced ? LOOK_COLLECTIVE : 0));
}

/* Copies are irregular. They help to find a sequence, but a missing copy does not break it. */
static inline bool step_is_alike(u8 a, u8 b, u8 flags)
{
	u32 distance = (a & LOOK_LAUNCHES) - (b & LOOK_LAUNCHES) + LOOK_NEAR;

	return !((a ^ b) & flags) && distance <= 2 * LOOK_NEAR;
}

_Static_assert(STEP_DOUBT_MIN >= STEP_RING && STEP_RING >= 3 * STEP_PERIOD_MAX, "see step_find");

static inline u32 step_sure(u32 period)
{
	return 3 * period > STEP_SURE ? 3 * period : STEP_SURE;
}

/* Finds a sequence in the newest cycles. Judging restarts at the first cycle of the sequence. */
static inline void step_find(struct step_state *s)
{
	u64 first;
	u32 period = 0;

	for (u32 p = STEP_PERIOD_MAX; p > 0; p--)
		if (s->runs[p] + p >= step_sure(p))
			period = p;
	if (!period)
		return;
	first = s->nr_cycles - step_sure(period);
	/* Steps are assumed to be aligned with the first cycle of the process. */
	first += (period - first % period) % period;
	/* No earlier step has these cycles: STEP_DOUBT_MIN extra cycles came before. */
	s->nr_judged = first;
	for (u32 i = 0; i < STEP_PERIOD_MAX; i++)
		s->pattern[i] = s->looks[(s->nr_judged + i) & (STEP_RING - 1)];
	s->period = (u8)period;
	s->place = 0;
	s->nr_between = 0;
	s->nr_fits = 0;
	s->ended_ns = 0;
}

/* A cycle ended. The counts are totals since the start of the process. */
static inline void step_cycle(struct step_state *s, u64 nr_launches, u64 nr_copies, u64 now)
{
	u8 look = step_look(nr_launches - s->nr_launches, nr_copies != s->nr_copies,
			    s->had_collective);

	for (u32 p = 1; p <= STEP_PERIOD_MAX; p++) {
		u8 before = s->looks[(s->nr_cycles - p) & (STEP_RING - 1)];
		bool alike = s->nr_cycles >= p &&
			     step_is_alike(look, before, LOOK_COLLECTIVE | LOOK_COPY);

		s->runs[p] = alike ? s->runs[p] + (s->runs[p] < 255) : 0;
	}
	s->looks[s->nr_cycles & (STEP_RING - 1)] = look;
	s->ends_ns[s->nr_cycles & (STEP_RING - 1)] = now;
	s->nr_cycles++;
	s->nr_launches = nr_launches;
	s->nr_copies = nr_copies;
	s->had_collective = 0;
	if (!s->period)
		step_find(s);
}

/* A sync returned. True if a cycle ended with it. */
static inline bool step_sync(struct step_state *s, u64 nr_launches, u64 nr_copies, u64 now)
{
	if (nr_launches == s->nr_launches)
		return false;
	step_cycle(s, nr_launches, nr_copies, now);
	return true;
}

struct step_end {
	u64 at_ns;
	u64 length_ns; /* 0: not known, as for the first step */
};

/* The cycle is not the next one of the pattern. */
static inline void step_doubt(struct step_state *s)
{
	s->nr_between++;
	if (s->nr_between > STEP_DOUBT_MIN && s->nr_between > s->nr_fits)
		s->period = 0;
}

/* Judges one cycle, if one is left. True if a step ended with it. */
static inline bool step_judge(struct step_state *s, struct step_end *ret)
{
	bool known;
	u64 at;
	u8 look;

	if (!s->period || s->nr_judged == s->nr_cycles)
		return false;
	at = s->ends_ns[s->nr_judged & (STEP_RING - 1)];
	look = s->looks[s->nr_judged & (STEP_RING - 1)];
	s->nr_judged++;
	if (!step_is_alike(look, s->pattern[s->place & (STEP_PATTERN - 1)], LOOK_COLLECTIVE)) {
		step_doubt(s);
		return false;
	}
	s->nr_fits += s->nr_fits < STEP_DOUBT_MAX;
	if (++s->place < s->period)
		return false;
	known = s->ended_ns && s->nr_between <= STEP_BETWEEN;
	*ret = (struct step_end){ at, known ? at - s->ended_ns : 0 };
	s->place = 0;
	s->nr_between = 0;
	s->nr_steps++;
	s->ended_ns = at;
	return true;
}
