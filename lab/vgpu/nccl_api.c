/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Calls and groups of the collective library; see nccl.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "vgpu/nccl.h"

/* A requested communicator, which the program gets when all ranks have joined. */
struct joining {
	struct ncclComm *comm; /* NULL until the split is complete */
	struct ncclComm *parent;
	u64 split_number;
	ncclComm_t *out;
};

#define MAX_JOINS 64
#define MAX_CALLS 1024

static _Thread_local struct {
	u32 depth;
	u32 nr_calls;
	u32 nr_joins;
	struct call calls[MAX_CALLS];
	struct joining joins[MAX_JOINS];
} group;

static ncclResult_t group_flush(u64 entry_ns)
{
	u32 nr_calls = group.nr_calls, nr_joins = group.nr_joins;
	ncclResult_t r = ncclSuccess;

	group.nr_calls = 0;
	group.nr_joins = 0;
	for (u32 i = 0; i < nr_joins && r == ncclSuccess; i++) {
		struct joining *join = &group.joins[i];

		if (join->parent)
			r = split_finish(join->parent, join->split_number, &join->comm);
	}
	for (u32 i = 0; i < nr_joins && r == ncclSuccess; i++) {
		struct joining *join = &group.joins[i];

		if (join->comm)
			r = comm_start(join->comm);
		if (r == ncclSuccess)
			*join->out = join->comm;
	}
	return r == ncclSuccess ? calls_submit(group.calls, nr_calls, entry_ns) : r;
}

static ncclResult_t group_add_joining(struct joining join)
{
	if (group.nr_joins == MAX_JOINS)
		return ncclInvalidUsage;
	group.joins[group.nr_joins++] = join;
	return group.depth ? ncclSuccess : group_flush(truth_now_ns());
}

ncclResult_t group_add_join(struct ncclComm *comm, ncclComm_t *out)
{
	return group_add_joining((struct joining){ .comm = comm, .out = out });
}

ncclResult_t group_add_split(struct ncclComm *parent, u64 number, ncclComm_t *out)
{
	return group_add_joining(
		(struct joining){ .parent = parent, .split_number = number, .out = out });
}

ncclResult_t group_add_call(const struct call *call)
{
	if (group.nr_calls == MAX_CALLS)
		return ncclInvalidUsage;
	group.calls[group.nr_calls++] = *call;
	return group.depth ? ncclSuccess : group_flush(call->entry_ns);
}

ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	u64 entry = truth_now_ns();

	if (!group.depth)
		return ncclInvalidUsage;
	return --group.depth ? ncclSuccess : group_flush(entry);
}

ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return ncclInvalidArgument;
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	if (!id)
		return ncclInvalidArgument;
	memset(id, 0, sizeof(*id));
	return getrandom(id->internal, sizeof(u64), 0) == sizeof(u64) ? ncclSuccess
								      : ncclSystemError;
}

static ncclResult_t join(ncclComm_t *comm, int nranks, const ncclUniqueId *id, int rank, int device)
{
	struct ncclComm *joined;
	ncclResult_t r;
	u64 number;

	memcpy(&number, id->internal, sizeof(number));
	/* 0 marks an unused entry of the shared file. */
	r = comm_join(number | 1, (u32)nranks, (u32)rank, device, &joined);
	return r == ncclSuccess ? group_add_join(joined, comm) : r;
}

static ncclResult_t init_rank(ncclComm_t *comm, int nranks, const ncclUniqueId *id, int rank)
{
	int device;

	if (!comm || nranks < 1 || nranks > SHM_RANKS || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	if (VGPU_OPS.enter(&device) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	return join(comm, nranks, id, rank, device);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return init_rank(comm, nranks, &id, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	return init_rank(comm, nranks, &id, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices)
{
	ncclResult_t r = ncclSuccess;
	ncclUniqueId id;
	int device;

	if (!comms || ndev < 1 || ndev > SHM_RANKS || ncclGetUniqueId(&id) != ncclSuccess)
		return ncclInvalidArgument;
	if (VGPU_OPS.enter(&device) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	group.depth++;
	for (int i = 0; i < ndev && r == ncclSuccess; i++)
		r = join(&comms[i], ndev, &id, i, devices ? devices[i] : i);
	if (--group.depth || r != ncclSuccess)
		return r;
	return group_flush(truth_now_ns());
}

static const u8 type_bytes[] = {
	[ncclInt8] = 1,	   [ncclUint8] = 1,    [ncclInt32] = 4,	     [ncclUint32] = 4,
	[ncclInt64] = 8,   [ncclUint64] = 8,   [ncclFloat16] = 2,    [ncclFloat32] = 4,
	[ncclFloat64] = 8, [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1,
};

static ncclResult_t collective(enum vgpu_coll op, size_t count, ncclDataType_t type, int peer,
			       ncclComm_t comm, CUstream stream)
{
	struct call call = { .comm = comm, .stream = stream, .op = op, .peer = (u32)peer };

	call.entry_ns = truth_now_ns();
	if (!comm || type >= ARRAY_SIZE(type_bytes) || peer < 0 || (u32)peer >= comm->nr_ranks)
		return ncclInvalidArgument;
	call.bytes = count * type_bytes[type];
	return group_add_call(&call);
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclRedOp_t op, ncclComm_t comm, ncclStream_t stream)
{
	return collective(VGPU_COLL_ALLREDUCE, count, type, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
			   int root, ncclComm_t comm, ncclStream_t stream)
{
	return collective(VGPU_COLL_BROADCAST, count, type, root, comm, stream);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			ncclRedOp_t op, int root, ncclComm_t comm, ncclStream_t stream)
{
	return collective(VGPU_COLL_REDUCE, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclComm_t comm, ncclStream_t stream)
{
	return collective(VGPU_COLL_ALLGATHER, count, type, 0, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
			       ncclRedOp_t op, ncclComm_t comm, ncclStream_t stream)
{
	return collective(VGPU_COLL_REDUCESCATTER, count, type, 0, comm, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		      ncclComm_t comm, ncclStream_t stream)
{
	return collective(VGPU_COLL_SEND, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      ncclStream_t stream)
{
	return collective(VGPU_COLL_RECV, count, type, peer, comm, stream);
}

static const char *const result_text[] = {
	[ncclSuccess] = "no error",
	[ncclUnhandledCudaError] = "unhandled cuda error",
	[ncclSystemError] = "unhandled system error",
	[ncclInternalError] = "internal error",
	[ncclInvalidArgument] = "invalid argument",
	[ncclInvalidUsage] = "invalid usage",
	[ncclRemoteError] = "remote process exited or there was a network error",
	[ncclInProgress] = "NCCL operation in progress",
};

const char *ncclGetErrorString(ncclResult_t result)
{
	return (size_t)result < ARRAY_SIZE(result_text) ? result_text[result]
							: "unknown result code";
}
