/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Internal to the collective library, which is compiled as libnccl and as librccl.
 *
 * A collective call puts work on a stream and returns. When the stream reaches the
 * work, the rank writes its arrival into the shared file. When all ranks have arrived,
 * the work ends for all of them at the last arrival plus size divided by bandwidth; the
 * size is count times the size of the type. Work of one communicator runs in order. Each
 * communicator has a helper thread that spins with sched_yield while work is
 * unfinished, like the real proxy, and sleeps otherwise.
 *
 * If a rank dies, the remaining ranks wait, as in reality: ncclCommGetAsyncError
 * then returns ncclRemoteError, and ncclCommAbort ends the wait.
 */
#include "base/macros.h"
#include "vgpu/include/vgpu_nccl.h"
#include "vgpu/ops.h"

struct ncclComm {
	struct ncclComm *next;
	struct shm_comm *shared;
	u64 id;
	u32 rank;
	u32 nr_ranks;
	int device;
	/* The lock of the engine protects the members below. */
	u64 nr_queued, nr_done;
	u64 last_end_ns;
	u64 coll_number;
	u64 split_number;
	u64 send_number[SHM_RANKS];
	u64 recv_number[SHM_RANKS];
	bool aborted;
	bool quit;
	bool remote_error; /* atomic: written and read without the lock */
	pthread_cond_t wake;
	pthread_t helper;
};

/* One call of the program. */
struct call {
	struct ncclComm *comm;
	CUstream stream;
	enum vgpu_coll op;
	u32 peer; /* of a send or receive */
	u64 bytes;
	u64 number;
	u64 entry_ns;
};

/* Calls inside a group wait for its end; a call outside a group is its own group. */
ncclResult_t group_add_call(const struct call *call);
ncclResult_t group_add_join(struct ncclComm *comm, ncclComm_t *out);
ncclResult_t group_add_split(struct ncclComm *parent, u64 number, ncclComm_t *out);

/* nccl_op.c: queues these calls; sends and receives of one stream become one piece of work. */
ncclResult_t calls_submit(struct call *calls, u32 nr, u64 entry_ns);

/* nccl_comm.c */
ncclResult_t comm_join(u64 id, u32 nr_ranks, u32 rank, int device, struct ncclComm **ret);
ncclResult_t comm_start(struct ncclComm *comm); /* waits for all ranks */
ncclResult_t split_finish(struct ncclComm *parent, u64 number, struct ncclComm **ret);
