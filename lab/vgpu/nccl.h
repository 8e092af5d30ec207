/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside the collective library, which is compiled as libnccl and as librccl.
 *
 * A collective call puts work on a stream and returns. When the stream reaches
 * it, the rank writes its arrival into the shared file; when all ranks have, the
 * work ends for all at the last arrival plus size over bandwidth, where size is
 * count times the size of the type. Work of one communicator runs in order. Each
 * communicator has a helper thread that spins with sched_yield while work is
 * unfinished, as the real proxy does, and sleeps otherwise.
 *
 * A rank that dies leaves the others waiting, as in reality:
 * ncclCommGetAsyncError then says ncclRemoteError and ncclCommAbort ends the wait.
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
	/* From here on guarded by the engine's lock. */
	u64 nr_queued, nr_done;
	u64 last_end_ns;
	u64 coll_number;
	u64 split_number;
	u64 send_number[SHM_RANKS];
	u64 recv_number[SHM_RANKS];
	bool aborted;
	bool quit;
	bool remote_error; /* atomic: set and read without the lock */
	pthread_cond_t wake;
	pthread_t helper;
};

/* One call of the program. */
struct call {
	struct ncclComm *comm;
	CUstream stream;
	enum vgpu_coll op;
	u32 peer; /* sends and receives */
	u64 bytes;
	u64 number;
	u64 entry_ns;
};

/* Calls inside a group wait for its end; outside one they are a group of their own. */
ncclResult_t group_add_call(const struct call *call);
ncclResult_t group_add_join(struct ncclComm *comm, ncclComm_t *out);
ncclResult_t group_add_split(struct ncclComm *parent, u64 number, ncclComm_t *out);

/* nccl_op.c: queues these calls; sends and receives of one stream as one piece of work. */
ncclResult_t calls_submit(struct call *calls, u32 nr, u64 entry_ns);

/* nccl_comm.c */
ncclResult_t comm_join(u64 id, u32 nr_ranks, u32 rank, int device, struct ncclComm **ret);
ncclResult_t comm_start(struct ncclComm *comm); /* waits for all ranks */
ncclResult_t split_finish(struct ncclComm *parent, u64 number, struct ncclComm **ret);
