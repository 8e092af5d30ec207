/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tasks that had a CPU recently. A task that waits for a CPU usually waits for several others,
 * one after another. Each of them has a part in the wait: the time that it ran.
 */
#include "abi/signals.h"

#define TURNS	    8 /* a power of two */
#define TURN_MIN_NS (100ULL * 1000)

/* Words, because BPF can compare them. */
struct turn_name {
	u64 words[COMM_LEN / sizeof(u64)];
};

struct turn {
	u64 ended_ns; /* 0: free */
	struct turn_name name;
};

/* Zeroed, it is empty. */
struct turns {
	struct turn turn[TURNS];
	u32 nr; /* the last turn is at this index, modulo TURNS */
};

static inline struct turn *turn_at(struct turns *turns, u32 i)
{
	/* Keeps the compiler from dropping the mask, which the verifier needs. */
	asm volatile("" : "+r"(i));
	return &turns->turn[i & (TURNS - 1)];
}

/* Whether the turn that ends now is too short to be kept. Its time counts as part of the next. */
static inline bool turns_is_short(struct turns *turns, u64 now)
{
	return now - turn_at(turns, turns->nr)->ended_ns < TURN_MIN_NS;
}

/* Turns of tasks with the same name, one after another, are one. */
static inline void turns_end(struct turns *turns, const struct turn_name *name, u64 now)
{
	struct turn *last = turn_at(turns, turns->nr);

	if (last->name.words[0] != name->words[0] || last->name.words[1] != name->words[1])
		last = turn_at(turns, ++turns->nr);
	last->name = *name;
	last->ended_ns = now;
}

/* A wait for the CPU that ends now, from its end back. */
struct turns_walk {
	struct turn_name leaving; /* the task that leaves the CPU now, whose turn may be short */
	u64 until_ns;		  /* turns from here on have been told */
	u64 left_ns;		  /* of the wait */
};

/*
 * The part of the i-th task in the wait, and its name; 0 is the last one that ran. Call it with
 * each number below TURNS, while some of the wait is left. The rest has no name: those turns are
 * too old.
 */
static inline u64 turns_part(struct turns *turns, u32 i, struct turns_walk *walk,
			     struct turn_name *ret)
{
	const struct turn *its = turn_at(turns, turns->nr - i + 1);
	u64 began_ns = turn_at(turns, turns->nr - i)->ended_ns, part;

	if (i && !its->ended_ns) {
		walk->left_ns = 0;
		return 0;
	}
	*ret = i ? its->name : walk->leaving;
	part = walk->until_ns - began_ns;
	if (part > walk->left_ns)
		part = walk->left_ns;
	walk->until_ns = began_ns;
	walk->left_ns -= part;
	return part;
}
