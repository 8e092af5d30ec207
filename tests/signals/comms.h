/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the rank processes, which know the truth, and the test, which compares it
 * with the state of the BPF programs. Both use the collective library that this is
 * linked with, libnccl or librccl.
 */
#include <stdatomic.h>
#include "abi/runtime.h"
#include "harness.h"
#include "vgpu/include/vgpu_nccl.h"

#define NR_RANKS 4

struct true_comm {
	u64 handle;
	u32 rank;
	u32 nr_ranks; /* 0: unknown to the BPF programs */
	u32 tag;      /* not 0: ranks with this tag have the same communicator */
	u32 operation;
	u64 nr; /* collectives, without sends and receives; operation and bytes of the last one */
	u64 bytes;
};

/* The state of one process that the BPF programs must have now. */
struct truth {
	atomic_uint stage; /* incremented whenever the rest may be compared */
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
	ncclUniqueId id[3];	 /* of the world and of two more communicators */
	atomic_uint nr_compared; /* number of compared stages */
	u64 seed;
	struct truth truth[NR_RANKS];
};
extern struct shared *shared;

/* How processes get their ranks. */
struct scenario {
	const char *name;
	u32 nr_processes;
	void (*init)(u32 process,
		     ncclComm_t *comm); /* creates NR_RANKS / nr_processes communicators */
};
extern const struct scenario scenarios[];
extern const u32 nr_scenarios;
extern const struct scenario *scenario;

/* Called by a process: compares its state now; adds a communicator; removes one. */
void truth_compare(struct truth *truth);
void truth_add_comm(struct truth *truth, ncclComm_t comm, u32 rank, u32 nr_ranks);
void truth_tag_comm(struct truth *truth, u32 tag); /* the one that was added last */
void truth_destroy_comm(struct truth *truth, ncclComm_t comm, bool abort);
/* Runs a collective on the communicator, and waits for it. */
void truth_reduce(struct truth *truth, ncclComm_t comm);

void rank_init(u32 rank, ncclComm_t *ret);

/* The bodies of the processes; the argument is the number of the process. */
void ranks_live(int process); /* runs all operations, as the scenario defines */
void ranks_in_a_smaller_world(int process);
void ranks_split_half_seen(int process); /* the last rank uses a library without probes */
void ranks_split_late(int process);	 /* the communicator is older than the probes */
void ranks_never_return(int process);	 /* all ranks except the last enter a split */

/* The copy of the library without probes, for ranks_split_half_seen(). */
extern const char *unseen_library;
