/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Communicators: the rank of a process and the number of ranks. A call that creates a
 * communicator passes both, except a split. The result of a split follows from the
 * arguments of all ranks of the parent: ranks with the same color form a communicator,
 * ordered by key and then by their rank in the parent.
 *
 * If the call of one rank was not seen, the result of a split is unknown, never wrong.
 * A size of 0 means unknown.
 */
#include <stdbool.h>
#include "abi/runtime.h"

/* A split is followed up to this many ranks. All of them must be on this machine. */
#define COMM_MEMBERS_MAX 64
/* Maximum number of communicators per process. */
#define COMMS_MAX	 64
/* Maximum number of concurrent splits on the whole machine. */
#define SPLITS_MAX	 1024
/* The color of a rank that joins no new communicator. */
#define COMM_NO_COLOR	 (-1)

/* The return value of an NCCL call that was accepted and completes in the background. */
#define NCCL_IN_PROGRESS 7

enum comm_state {
	COMM_FREE,
	COMM_CLAIMED,
	COMM_JOINING, /* requested by thread `tid`, not ready yet */
	COMM_READY,
};

struct comm {
	u64 state;    /* 64 bits wide, because it is claimed by an atomic exchange */
	u64 handle;   /* the handle that the program uses */
	u64 identity; /* the same for all its ranks; 0 if not known */
	u64 since_ns; /* when it was requested */
	u64 parent;   /* of a split: the handle of the parent */
	u64 group;    /* of a split: the group of calls it belongs to; 0 for no group */
	u64 out;      /* the address where the call stores the handle */
	u32 tid;
	u16 made_by;	  /* enum call_detail */
	u16 is_uncounted; /* a collective of it has no number, so it cannot be compared */
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

/* The arguments of all ranks of a parent in one split, indexed by rank. */
struct comm_group {
	u64 present; /* a bit for each rank whose call was seen */
	u64 nr_open; /* calls that have not returned yet */
	struct comm_member member[COMM_MEMBERS_MAX];
};

struct comm_place {
	u32 rank;
	u32 nr_ranks;
};

/* Hashes one more word into an identity. Never returns 0, which means unknown. */
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

/* The sort key inside a color: key first, then the rank in the parent. */
static inline s64 comm_order(const struct comm_member *member, u32 rank)
{
	return (s64)member->key * COMM_MEMBERS_MAX + rank;
}

/* 1 if x is negative, else 0. The asm keeps the compiler from turning it into a branch. */
static inline u64 comm_sign(s64 x)
{
	__asm__ volatile("" : "+r"(x));
	return (u64)x >> 63;
}

/*
 * The new rank and size that a complete split gives to `rank` of the parent. The loop
 * has no conditional branch, because each branch would double the number of paths that
 * the verifier checks.
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
 * The rank and size that remain for a rank when `nr` ranks are excluded, in any order. A list
 * that cannot be right gives an unknown size. Without a conditional branch, as above.
 */
static inline struct comm_place comm_shrink(u32 rank, u32 nr_ranks,
					    const s32 excluded[COMM_MEMBERS_MAX], u32 nr)
{
	u64 nr_before = 0;

	if (nr > COMM_MEMBERS_MAX || nr >= nr_ranks)
		return (struct comm_place){};
	for (u32 i = 0; i < COMM_MEMBERS_MAX; i++)
		nr_before += comm_sign((s64)i - nr) & comm_sign((s64)excluded[i] - rank);
	if (nr_before > rank)
		return (struct comm_place){};
	return (struct comm_place){ .rank = rank - (u32)nr_before, .nr_ranks = nr_ranks - nr };
}

/*
 * The rank of a process is its rank in its world: the largest communicator that was not
 * created by a split. If several have the same size, the oldest counts.
 */
static inline bool comm_is_world_before(const struct comm *comm, const struct comm *than)
{
	if (comm->state != COMM_READY || comm->made_by == DETAIL_SPLIT || !comm->nr_ranks)
		return false;
	if (comm->nr_ranks != than->nr_ranks)
		return comm->nr_ranks > than->nr_ranks;
	return comm->since_ns < than->since_ns;
}

/* True if both are the same communicator. A process can have several ranks in it. */
static inline bool comm_is_same(const struct comm *a, const struct comm *b)
{
	return a == b || (a->identity && a->state == COMM_READY && a->identity == b->identity);
}

/* True if the collective runtime accepted the call. */
static inline bool collective_accepted(u32 runtime, s32 result)
{
	return result == 0 || (result == NCCL_IN_PROGRESS && runtime != RUNTIME_MPI);
}
