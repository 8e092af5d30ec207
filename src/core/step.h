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
 *
 * Two bases are better than syncs. If the framework names its optimizer steps, these are
 * the steps and cycles are ignored. Otherwise a job that brings results to the host is
 * assumed to be inference: an iteration is a copy to the host and the sync or query that
 * covers it. This applies if each repetition of the sequence has one such copy, or if no
 * sequence repeats and half of the cycles have one. A sequence with several copies is more
 * likely a step that reads several values. A training loop without named steps that
 * reads its loss every N steps looks like inference, with iterations of N steps.
 *
 * When the basis changes, steps continue to be counted, but no length is known for the step
 * in between.
 */
#include <stdbool.h>
#include "abi/signals.h"
#include "core/hist.h"
#include "core/ledger.h"

#define STEP_PERIOD_MAX 5  /* the largest number of cycles in a step */
#define STEP_RING	16 /* a power of two, at least 3 x STEP_PERIOD_MAX */
#define STEP_SURE	8  /* repeating cycles that are needed: this many, or three periods */
#define STEP_BETWEEN	2  /* extra cycles that a timed step may have */
#define STEP_DOUBT_MIN	16 /* extra cycles after which a young sequence is dropped */
#define STEP_DOUBT_MAX	64 /* extra cycles after which an old sequence is dropped */
#define STEP_PATTERN	8  /* a power of two, at least STEP_PERIOD_MAX */
#define STEP_JUDGE_MAX	2  /* cycles judged per sync; more than one, to catch up */
#define STEP_RESULTS	4  /* copies to the host that are followed; a power of two */

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
	/* Position and stream of copies to the host, in one number for a single write; 0: none. */
	u64 results[STEP_RESULTS];
	u8 looks[STEP_RING];
	u8 runs[STEP_PATTERN]; /* runs[p]: cycles in a row that were like the cycle p before */
	u8 pattern[STEP_PATTERN];
	u16 nr_between;	   /* extra cycles since the last step */
	u16 with_result;   /* a bit for each cycle of the ring: it brought a result to the host */
	u8 nr_fits;	   /* cycles that fit since the pattern is known, up to STEP_DOUBT_MAX */
	u8 period;	   /* cycles in the pattern; 0 while no pattern is known */
	u8 place;	   /* the position of the next cycle in the pattern */
	u8 had_collective; /* since the last cycle */
	u8 last_result;	   /* index in results */
	u8 basis;	   /* enum step_basis of the steps that were counted last */
	u8 nr_cleared; /* times that gradients were cleared before any optimizer step, up to 2 */
	u8 pad[5];
};

/* The time between the last two syncs that ended a cycle; 0 if there were none. */
static inline u64 step_cycle_ns(const struct step_state *s)
{
	u64 last = s->ends_ns[(s->nr_cycles - 1) & (STEP_RING - 1)];
	u64 before = s->ends_ns[(s->nr_cycles - 2) & (STEP_RING - 1)];

	return s->nr_cycles < 2 || last < before ? 0 : last - before;
}

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

_Static_assert(STEP_RING == 16, "see with_result");
_Static_assert(STEP_DOUBT_MIN >= STEP_RING && STEP_RING >= 3 * STEP_PERIOD_MAX, "see step_find");

static inline u32 step_sure(u32 period)
{
	return 3 * period > STEP_SURE ? 3 * period : STEP_SURE;
}

/*
 * The number of the newest `nr` cycles, STEP_RING at most, that brought a result to the host.
 * Without a loop, each round of which would double what the verifier examines.
 */
static inline u32 step_nr_results(const struct step_state *s, u32 nr)
{
	u32 at = s->nr_cycles & (STEP_RING - 1), bits = s->with_result;

	/* Twice in a row: the newest cycles are adjacent, below bit `at + STEP_RING`. */
	bits = (bits << STEP_RING | bits) >> (at + STEP_RING - nr);
	return (u32)__builtin_popcount(bits & ((1U << nr) - 1));
}

/* Judging restarts at cycle `first`, in which a sequence of `period` cycles begins. */
static inline void step_accept(struct step_state *s, u32 basis, u32 period, u64 first)
{
	/* No earlier step has these cycles: STEP_DOUBT_MIN extra cycles came before. */
	s->nr_judged = first;
	for (u32 i = 0; i < STEP_PERIOD_MAX; i++)
		s->pattern[i] = s->looks[(first + i) & (STEP_RING - 1)];
	s->basis = (u8)basis;
	s->period = (u8)period;
	s->place = 0;
	s->nr_between = 0;
	s->nr_fits = 0;
	s->ended_ns = 0;
}

/* Iterations need not be alike: all cycles of the ring are judged. */
static inline void step_accept_iterations(struct step_state *s)
{
	u64 first = s->nr_cycles > STEP_RING ? s->nr_cycles - STEP_RING : 0;

	step_accept(s, STEP_BASIS_ITERATION, 1, first);
}

/* Finds a sequence, or iterations, in the newest cycles. */
static inline void step_find(struct step_state *s)
{
	u64 first;
	u32 period = 0;

	for (u32 p = STEP_PERIOD_MAX; p > 0; p--)
		if (s->runs[p] + p >= step_sure(p))
			period = p;
	if (!period) {
		if (s->nr_cycles >= STEP_RING && step_nr_results(s, STEP_RING) >= STEP_RING / 2)
			step_accept_iterations(s);
		return;
	}
	if (step_nr_results(s, step_sure(period)) * period == step_sure(period)) {
		step_accept_iterations(s);
		return;
	}
	first = s->nr_cycles - step_sure(period);
	/* Steps are assumed to be aligned with the first cycle of the process. */
	first += (period - first % period) % period;
	step_accept(s, STEP_BASIS_SYNC, period, first);
}

/* A cycle ended. The counts are totals since the start of the process. */
static inline void step_cycle(struct step_state *s, u64 nr_launches, u64 nr_copies, bool has_result,
			      u64 now)
{
	u32 at = s->nr_cycles & (STEP_RING - 1);
	u8 look = step_look(nr_launches - s->nr_launches, nr_copies != s->nr_copies,
			    s->had_collective);

	for (u32 p = 1; p <= STEP_PERIOD_MAX; p++) {
		u8 before = s->looks[(s->nr_cycles - p) & (STEP_RING - 1)];
		bool alike = s->nr_cycles >= p &&
			     step_is_alike(look, before, LOOK_COLLECTIVE | LOOK_COPY);

		s->runs[p] = alike ? s->runs[p] + (s->runs[p] < 255) : 0;
		/* Keeps the run out of registers: each would double what the verifier examines. */
		__asm__ volatile("" : : : "memory");
	}
	s->looks[at] = look;
	s->ends_ns[at] = now;
	s->with_result = (u16)((s->with_result & ~(1U << at)) | (u32)has_result << at);
	s->nr_cycles++;
	s->nr_launches = nr_launches;
	s->nr_copies = nr_copies;
	s->had_collective = 0;
	if (!s->period)
		step_find(s);
}

/*
 * A copy to the host was queued at a position of a stream; 0: it was captured into a graph.
 * Copies in a row are one result.
 */
static inline void step_result(struct step_state *s, u32 slot, u64 position)
{
	u64 result = position * LEDGER_STREAMS + slot;

	if (!position)
		return;
	if (s->results[s->last_result & (STEP_RESULTS - 1)] + LEDGER_STREAMS != result)
		s->last_result++;
	s->results[s->last_result & (STEP_RESULTS - 1)] = result;
}

/* The call that queued this copy to the host failed. */
static inline void step_result_failed(struct step_state *s, u32 slot, u64 position)
{
	u64 result = position * LEDGER_STREAMS + slot;

	__sync_val_compare_and_swap(&s->results[s->last_result & (STEP_RESULTS - 1)], result, 0);
}

/*
 * Whether a copy to the host became known to be done. Other threads queue copies at the same
 * time, so a copy is only removed if it is still the one that was examined.
 */
static inline bool step_covers(struct step_state *s, struct ledger *ledger)
{
	bool covers = false;

	for (u32 i = 0; i < STEP_RESULTS; i++) {
		u64 result = s->results[i];
		struct ledger_mark mark = { .position = result / LEDGER_STREAMS,
					    .stream = result % LEDGER_STREAMS };

		if (result && ledger_mark_is_done(ledger, &mark))
			covers |= __sync_val_compare_and_swap(&s->results[i], result, 0) == result;
	}
	return covers;
}

/* Whether the steps are named, or the first named one is expected, so that cycles do not count. */
static inline bool step_is_named(const struct step_state *s)
{
	return s->basis == STEP_BASIS_OPTIMIZER || s->nr_cleared == 1;
}

/* A sync returned, or a query that shows a result. True if a cycle ended with it. */
static inline bool step_sync(struct step_state *s, u64 nr_launches, u64 nr_copies, bool has_result,
			     u64 now)
{
	if (step_is_named(s) || (nr_launches == s->nr_launches && !has_result))
		return false;
	step_cycle(s, nr_launches, nr_copies, has_result, now);
	return true;
}

struct step_end {
	u64 at_ns;
	u64 length_ns; /* 0: not known, as for the first step */
};

static inline struct step_end step_count(struct step_state *s, bool is_timed, u64 now)
{
	u64 before = s->ended_ns;

	s->nr_steps++;
	s->ended_ns = now;
	return (struct step_end){ now, is_timed && before ? now - before : 0 };
}

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
	u32 index = s->nr_judged & (STEP_RING - 1);
	u8 next = s->pattern[s->place & (STEP_PATTERN - 1)];

	if (step_is_named(s) || !s->period || s->nr_judged == s->nr_cycles)
		return false;
	s->nr_judged++;
	if (s->basis == STEP_BASIS_ITERATION
		    ? !(s->with_result >> index & 1)
		    : !step_is_alike(s->looks[index], next, LOOK_COLLECTIVE)) {
		step_doubt(s);
		return false;
	}
	s->nr_fits += s->nr_fits < STEP_DOUBT_MAX;
	if (++s->place < s->period)
		return false;
	*ret = step_count(s, s->nr_between <= STEP_BETWEEN, s->ends_ns[index]);
	s->place = 0;
	s->nr_between = 0;
	return true;
}

/*
 * The framework clears its gradients. The first optimizer step is then expected, and the
 * cycles before it are not steps. If gradients are cleared again without a named
 * step, as in a compiled optimizer, the steps have no names and cycles count again.
 */
static inline void step_cleared(struct step_state *s)
{
	s->nr_cleared += s->nr_cleared < 2;
}

/* A named optimizer step begins. */
static inline void step_named(struct step_state *s)
{
	if (s->basis == STEP_BASIS_OPTIMIZER)
		return;
	s->basis = STEP_BASIS_OPTIMIZER;
	s->ended_ns = 0;
}

/* A named optimizer step ended. */
static inline struct step_end step_optimized(struct step_state *s, u64 now)
{
	return step_count(s, true, now);
}
