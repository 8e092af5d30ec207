/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Ranks with edge cases of creating and destroying communicators. */
#include "signals/comms.h"

#include <dlfcn.h>
#include <unistd.h>

/*
 * A pair of ranks beside the world, and another communicator after the world is destroyed. It takes
 * the place of the world, and numbers its collectives from 1. */
void ranks_in_a_smaller_world(int process)
{
	struct truth *truth = &shared->truth[process];
	ncclComm_t world, pair, last;

	rank_init((u32)process, &world);
	CHECK(!ncclCommInitRank(&pair, 2, shared->id[1 + process / 2], process % 2));
	truth_add_comm(truth, world, (u32)process, NR_RANKS);
	truth_add_comm(truth, pair, (u32)process % 2, 2);
	truth->rank = (u32)process;
	truth->nr_ranks = NR_RANKS;
	truth->nr_local_ranks = 1;
	truth_reduce(truth, world);
	truth_reduce(truth, world);
	truth_compare(truth);
	truth_destroy_comm(truth, world, false);
	truth_compare(truth);
	truth_destroy_comm(truth, pair, false);
	CHECK(!ncclCommInitAll(&last, 1, &process));
	truth_add_comm(truth, last, 0, 1);
	truth->rank = 0;
	truth->nr_ranks = 1;
	truth_compare(truth);
	truth_reduce(truth, last);
	truth_compare(truth);
	truth->is_done = true;
}

const char *unseen_library;

static void split_unseen(u32 rank)
{
	void *library = dlopen(unseen_library, RTLD_NOW | RTLD_LOCAL);
	__typeof__(&ncclCommInitRank) init;
	__typeof__(&ncclCommSplit) apart;
	ncclComm_t comm, child;

	CHECK(library);
	init = (__typeof__(init))dlsym(library, "ncclCommInitRank");
	apart = (__typeof__(apart))dlsym(library, "ncclCommSplit");
	CHECK(init && apart && init != &ncclCommInitRank);
	CHECK(!init(&comm, NR_RANKS, shared->id[0], (int)rank));
	CHECK(!apart(comm, 0, 0, &child, NULL));
}

void ranks_split_half_seen(int process)
{
	struct truth *truth = &shared->truth[process];
	ncclComm_t comm, child;

	if (process == NR_RANKS - 1) {
		split_unseen((u32)process);
	} else {
		rank_init((u32)process, &comm);
		CHECK(!ncclCommSplit(comm, 0, 0, &child, NULL));
		truth_add_comm(truth, comm, (u32)process, NR_RANKS);
		truth_tag_comm(truth, 1);
		truth_add_comm(truth, child, 0, 0);
		truth_tag_comm(truth, 2);
		truth->rank = (u32)process;
		truth->nr_ranks = NR_RANKS;
		truth->nr_local_ranks = 1;
	}
	truth_compare(truth);
	truth->is_done = true;
}

void ranks_split_late(int process)
{
	struct truth *truth = &shared->truth[process];
	ncclComm_t comm, child;

	rank_init((u32)process, &comm);
	truth_compare(truth);
	CHECK(!ncclCommSplit(comm, 0, 0, &child, NULL));
	truth_add_comm(truth, child, 0, 0);
	truth_compare(truth);
	truth->is_done = true;
}

void ranks_never_return(int process)
{
	struct truth *truth = &shared->truth[process];
	ncclComm_t comm, child;

	rank_init((u32)process, &comm);
	truth->stage++;
	if (process < NR_RANKS - 1)
		ncclCommSplit(comm, 0, 0, &child, NULL);
	pause();
}
