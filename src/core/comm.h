/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Communicators: who has which rank among how many. A call that makes one names
 * both, but for a split, whose result follows from what all ranks of the parent
 * asked for: those of one colour are together, ordered by key and then by their
 * rank in the parent.
 *
 * A rank that nothing is known of makes the result of a split unknown, never
 * wrong: a size of 0 says so.
 */
#include <stdbool.h>
#include "abi/runtime.h"

/* A split is followed up to so many ranks, all of them on this machine. */
#define COMM_MEMBERS_MAX 64
/* Communicators of one process. */
#define COMMS_MAX	 64
/* Splits under way at the same time, on the whole machine. */
#define SPLITS_MAX	 1024
/* What a rank passes that will be in none of the new communicators. */
#define COMM_NO_COLOR	 (-1)

/* What a call into NCCL said when it was taken on and will be done in the background. */
#define NCCL_IN_PROGRESS 7

enum comm_state {
	COMM_FREE,
	COMM_CLAIMED,
	COMM_JOINING, /* asked for by the thread `tid` */
	COMM_READY,
};

struct comm {
	u64 state;    /* 64 bits wide since it is claimed by an atomic exchange */
	u64 handle;   /* what the program knows it by */
	u64 identity; /* the same for all its ranks, 0 where it is not known */
	u64 since_ns; /* when it was asked for */
	u64 parent;   /* of a split: the handle of what is split, */
	u64 group;    /* and which group of calls it belongs to, 0 for none */
	u64 out;      /* where the handle will be found */
	u32 tid;
	u32 made_by; /* enum call_detail */
	u32 rank;
	u32 nr_ranks; /* 0: rank and size are not known */
	u32 nr_splits;
	u32 parent_rank;
	u32 nr_parent_ranks;
	s32 color;
};

/* All communicators of a process. */
struct comms {
	u64 nr_changes;
	struct comm comm[COMMS_MAX];
};
_Static_assert(sizeof(struct comms) == 8 + COMMS_MAX * 88, "shared with BPF");

struct comm_member {
	s32 color;
	s32 key;
};

/* What the ranks of a parent asked for in one split, each at the place of its rank. */
struct comm_group {
	u64 present; /* a bit for each rank whose call was seen */
	u64 nr_open; /* calls that have not come to their end */
	struct comm_member member[COMM_MEMBERS_MAX];
};

struct comm_place {
	u32 rank;
	u32 nr_ranks;
};

/* Brings one more word into an identity. Never 0, which stands for unknown. */
static inline u64 comm_mix(u64 identity, u64 word)
{
	u64 x = identity * 0x9e3779b97f4a7c15ULL ^ word;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
	return (x ^ (x >> 32)) | 1;
}

static inline bool comm_group_is_whole(const struct comm_group *group, u32 nr_ranks)
{
	return nr_ranks > 0 && nr_ranks <= COMM_MEMBERS_MAX &&
	       group->present == ~0ULL >> (COMM_MEMBERS_MAX - nr_ranks);
}

/* The order inside a colour. */
static inline s64 comm_order(const struct comm_member *member, u32 rank)
{
	return (s64)member->key * COMM_MEMBERS_MAX + rank;
}

/* 1 below 0, else 0. The compiler must not see through it and make a branch of it. */
static inline u64 comm_sign(s64 x)
{
	__asm__ volatile("" : "+r"(x));
	return (u64)x >> 63;
}

/*
 * Where a whole group's split puts the parent's `rank`. No comparison in the
 * loop is a branch, since every branch would double the paths the verifier walks.
 */
static inline struct comm_place comm_split(const struct comm_group *group, u32 rank)
{
	const struct comm_member *me = &group->member[rank % COMM_MEMBERS_MAX];
	s64 order = comm_order(me, rank % COMM_MEMBERS_MAX);
	u64 nr_before = 0, nr = 0;

	if (me->color == COMM_NO_COLOR)
		return (struct comm_place){};
	for (u32 i = 0; i < COMM_MEMBERS_MAX; i++) {
		const struct comm_member *other = &group->member[i];
		s64 differs = (u32)(other->color ^ me->color);
		u64 counts = comm_sign(differs - 1) & group->present >> i;

		nr += counts;
		nr_before += counts & comm_sign(comm_order(other, i) - order);
	}
	return (struct comm_place){ .rank = (u32)nr_before, .nr_ranks = (u32)nr };
}

/*
 * The rank of a process is the one it has in its world: the largest of the
 * communicators that were not split off another, of equals the oldest.
 */
static inline bool comm_is_world_before(const struct comm *comm, const struct comm *than)
{
	if (comm->state != COMM_READY || comm->made_by == DETAIL_SPLIT || !comm->nr_ranks)
		return false;
	if (comm->nr_ranks != than->nr_ranks)
		return comm->nr_ranks > than->nr_ranks;
	return comm->since_ns < than->since_ns;
}

/* Two ranks of one communicator in one process. */
static inline bool comm_is_same(const struct comm *a, const struct comm *b)
{
	return a == b || (a->identity && a->state == COMM_READY && a->identity == b->identity);
}

/* Whether a collective runtime took the call on. */
static inline bool collective_accepted(u32 runtime, s32 result)
{
	return result == 0 || (result == NCCL_IN_PROGRESS && runtime != RUNTIME_MPI);
}
