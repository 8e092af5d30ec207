/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Between the processes that hold ranks, which know what is true, and the test,
 * which compares that with what the kernel knows. Both run the collective
 * library that this is built with, libnccl or librccl.
 */
#include <stdatomic.h>
#include "abi/runtime.h"
#include "harness.h"
#include "vgpu/include/vgpu_nccl.h"

#define NR_RANKS 4

struct true_comm {
	u64 handle;
	u32 rank;
	u32 nr_ranks; /* 0: cannot be known */
};

/* What the kernel must know of one process now. */
struct truth {
	atomic_uint stage; /* up by one whenever the rest may be compared */
	atomic_bool is_done;
	u64 nr[COLLECTIVE_NR];
	u64 bytes[COLLECTIVE_NR];
	u32 rank;
	u32 nr_ranks;
	u32 nr_local_ranks;
	u32 nr_comms;
	struct true_comm comm[64];
};

struct shared {
	ncclUniqueId id[3];	 /* of the world and two more */
	atomic_uint nr_compared; /* stages */
	u64 seed;
	struct truth truth[NR_RANKS];
};
extern struct shared *shared;

/* How processes come by their ranks. */
struct scenario {
	const char *name;
	u32 nr_processes;
	void (*init)(u32 process, ncclComm_t *comm); /* NR_RANKS / nr_processes of them */
};
extern const struct scenario scenarios[];
extern const u32 nr_scenarios;
extern const struct scenario *scenario;

/* By one process: what it has is compared now; it has one communicator more, or less. */
void truth_compare(struct truth *truth);
void truth_add_comm(struct truth *truth, ncclComm_t comm, u32 rank, u32 nr_ranks);
void truth_destroy_comm(struct truth *truth, ncclComm_t comm, bool abort);

void rank_init(u32 rank, ncclComm_t *ret);

/* What the processes do; the argument is the process. */
void ranks_live(int process); /* as the scenario says, through everything */
void ranks_in_a_smaller_world(int process);
void ranks_split_half_seen(int process); /* when the last is another library's */
void ranks_split_late(int process);	 /* made before anybody looked */
void ranks_never_return(int process);	 /* all but the last enter a split */

/* The library's copy that nobody looks at, for ranks_split_half_seen(). */
extern const char *unseen_library;
