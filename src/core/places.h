/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A search for a CPU looks at a bounded number of CPUs, so that it costs the same on every
 * machine: first at CPUs of the cache of a task, from the task's own CPU on, then at CPUs of other
 * caches, from a random one on. On a machine with SEARCH_MAX CPUs or fewer, it looks at all.
 *
 * The place of a CPU is its number in the order of the caches.
 */
#include "abi/sched.h"

#define SEARCH_MAX  16
#define SEARCH_NEAR 8

struct search {
	u32 nr;		 /* CPUs that it looks at */
	u32 nr_near;	 /* of the own cache; they come first */
	u32 first, size; /* places of the own cache */
	u32 all;	 /* places of the machine */
	u32 at;		 /* the own CPU in its cache */
	u32 far;	 /* the first CPU of other caches, counted from the end of the own cache */
};

static inline struct search search_around(u32 first, u32 size, u32 place, u32 all, u32 random)
{
	u32 others = all - size;
	u32 near = all <= SEARCH_MAX || size < SEARCH_NEAR ? size : SEARCH_NEAR;
	u32 far = others < SEARCH_MAX - near ? others : SEARCH_MAX - near;

	return (struct search){
		.nr = near + far,
		.nr_near = near,
		.first = first,
		.size = size,
		.all = all,
		.at = place - first < size ? place - first : 0,
		.far = others ? random % others : 0,
	};
}

/* `i` is less than twice `size`. */
static inline u32 search_wrap(u32 i, u32 size)
{
	return i < size ? i : i - size;
}

static inline u32 search_place(const struct search *search, u32 i)
{
	u32 others = search->all - search->size;

	if (i < search->nr_near)
		return search->first + search_wrap(search->at + i, search->size);
	i = search_wrap(search->far + i - search->nr_near, others);
	return search_wrap(search->first + search->size + i, search->all);
}

/* A CPU without tasks of its own looks at so many caches; some of them are near. */
#define CACHES_MAX  8
#define CACHES_NEAR 4

static inline u32 caches_nr(u32 all)
{
	return all < CACHES_MAX ? all : CACHES_MAX;
}

/* The i-th of these caches: the own one, those with the next numbers, then from a random one on. */
static inline u32 cache_at(u32 own, u32 i, u32 all, u32 random)
{
	if (all > CACHES_MAX && i >= CACHES_NEAR)
		i = CACHES_NEAR + (random % all + i) % (all - CACHES_NEAR);
	return (own + i) % all;
}

/*
 * The first bit of a mask of places from the bit `from` on, then from the lowest one on. Searches
 * begin at different bits: places that are of no use would hide all others.
 */
static inline u64 place_bit_from(u64 mask, u64 from)
{
	u64 after = mask & ~(from - 1);

	return after ? after & -after : mask & -mask;
}

/* Queues of a larger LLC are contended, so it is split into shards that count as LLCs. */
#define SHARD_MAX 16

/* User space only: splits LLCs with more than SHARD_MAX CPUs, if there is room for the shards. */
void topology_split(struct topology *topology);
/* User space only: computes the places of all CPUs from the LLC of each one. */
void topology_place(struct topology *topology);
