/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Collective work: publishes arrivals and computes ends; see nccl.h. */
#include <stdlib.h>
#include <string.h>

#include "vgpu/nccl.h"

struct work {
	struct ncclComm *comm;
	u64 order;
	bool published;
	u32 nr_calls;
	struct call calls[];
};

static bool is_p2p(enum vgpu_coll op)
{
	return op == VGPU_COLL_SEND || op == VGPU_COLL_RECV;
}

static u64 *counter_of(const struct call *call)
{
	switch (call->op) {
	case VGPU_COLL_SEND: return &call->comm->send_number[call->peer];
	case VGPU_COLL_RECV: return &call->comm->recv_number[call->peer];
	default: return &call->comm->coll_number;
	}
}

static struct shm_arrival *arrival_of(const struct call *call, u32 rank)
{
	struct shm_rank *shared = &call->comm->shared->ranks[rank];
	u32 me = call->comm->rank;
	/* The other end of a send is a receive, and vice versa. */
	bool send = (call->op == VGPU_COLL_SEND) == (rank == me);
	u32 peer = rank == me ? call->peer : me;

	if (!is_p2p(call->op))
		return &shared->coll[call->number % SHM_COLL];
	return send ? &shared->send[peer][call->number % SHM_P2P]
		    : &shared->recv[peer][call->number % SHM_P2P];
}

/* A send of a rank to itself has both ends in one rank. */
static struct shm_arrival *other_end(const struct call *call)
{
	struct call other = *call;

	if (call->peer != call->comm->rank)
		return arrival_of(call, call->peer);
	other.op = call->op == VGPU_COLL_SEND ? VGPU_COLL_RECV : VGPU_COLL_SEND;
	return arrival_of(&other, call->peer);
}

static void publish(const struct call *call, u64 at_ns)
{
	struct shm_arrival *arrival = arrival_of(call, call->comm->rank);

	arrival->at_ns = at_ns;
	__atomic_store_n(&arrival->number, call->number, __ATOMIC_RELEASE);
}

static bool arrived(const struct shm_arrival *arrival, u64 number, u64 *last_ns)
{
	if (__atomic_load_n(&arrival->number, __ATOMIC_ACQUIRE) != number)
		return false;
	*last_ns = max_u64(*last_ns, arrival->at_ns);
	return true;
}

/* Raises *end to the end of this call, if all ranks that it needs have arrived. */
static bool call_ended(const struct call *call, u64 at_ns, u64 *end)
{
	u64 bandwidth = VGPU_OPS.shm()->config.nccl_bandwidth, last = at_ns;

	if (is_p2p(call->op)) {
		if (!arrived(other_end(call), call->number, &last))
			return false;
	} else {
		for (u32 r = 0; r < call->comm->nr_ranks; r++)
			if (!arrived(arrival_of(call, r), call->number, &last))
				return false;
	}
	*end = max_u64(*end, last + (u64)((double)call->bytes * 1e9 / (double)bandwidth));
	return true;
}

static void work_finish(struct work *work, u64 end_ns)
{
	struct ncclComm *comm = work->comm;

	for (u32 i = 0; i < work->nr_calls; i++) {
		const struct call *call = &work->calls[i];

		truth_log(VGPU_OPS.truth(), TRUTH_COLLECTIVE, call->op, call->entry_ns, end_ns,
			  comm->rank | (u64)comm->nr_ranks << 32, call->bytes, comm->id);
	}
	comm->nr_done++;
	comm->last_end_ns = end_ns;
	free(work);
}

/* The number of a call is its place among the calls that were queued; a capture queues none. */
static void work_start(void *arg)
{
	struct work *work = arg;

	work->order = work->comm->nr_queued++;
	for (u32 i = 0; i < work->nr_calls; i++)
		work->calls[i].number = ++*counter_of(&work->calls[i]);
	pthread_cond_signal(&work->comm->wake);
}

static void *work_copy(const void *arg, u64 entry_ns)
{
	const struct work *work = arg;
	size_t size = sizeof(*work) + work->nr_calls * sizeof(work->calls[0]);
	struct work *copy = malloc(size);

	if (!copy)
		return NULL;
	memcpy(copy, work, size);
	for (u32 i = 0; i < copy->nr_calls; i++)
		copy->calls[i].entry_ns = entry_ns;
	return copy;
}

static bool work_poll(void *arg, u64 arrival_ns, u64 *ret_end_ns)
{
	struct work *work = arg;
	struct ncclComm *comm = work->comm;
	u64 at = max_u64(arrival_ns, comm->last_end_ns), end = at;

	if (comm->aborted) {
		end = max_u64(arrival_ns, truth_now_ns());
	} else {
		if (work->order != comm->nr_done)
			return false;
		for (u32 i = 0; !work->published && i < work->nr_calls; i++)
			publish(&work->calls[i], at);
		work->published = true;
		for (u32 i = 0; i < work->nr_calls; i++)
			if (!call_ended(&work->calls[i], at, &end))
				return false;
	}
	work_finish(work, end);
	*ret_end_ns = end;
	return true;
}

static const struct external work_external = {
	.on_device = true,
	.start = work_start,
	.poll = work_poll,
	.copy = work_copy,
	.drop = free,
};

static bool fuses(const struct call *a, const struct call *b)
{
	return is_p2p(a->op) && is_p2p(b->op) && a->comm == b->comm && a->stream == b->stream;
}

/* Removes the first call, and all calls that belong to it, from the list. */
static struct work *work_take(struct call *calls, u32 *nr)
{
	struct work *work = calloc(1, sizeof(*work) + *nr * sizeof(*calls));
	u32 kept = 0;

	if (!work)
		return NULL;
	work->comm = calls[0].comm;
	work->calls[work->nr_calls++] = calls[0];
	for (u32 i = 1; i < *nr; i++) {
		if (fuses(&work->calls[0], &calls[i]))
			work->calls[work->nr_calls++] = calls[i];
		else
			calls[kept++] = calls[i];
	}
	*nr = kept;
	return work;
}

/* The shared rings limit how many transfers to one peer a piece of work may have in flight. */
static bool work_fits(const struct work *work)
{
	u32 send[SHM_RANKS] = {}, recv[SHM_RANKS] = {};

	for (u32 i = 0; i < work->nr_calls; i++) {
		const struct call *call = &work->calls[i];

		if (is_p2p(call->op) &&
		    ++(call->op == VGPU_COLL_SEND ? send : recv)[call->peer] > SHM_P2P / 2)
			return false;
	}
	return true;
}

static ncclResult_t work_submit(struct work *work, u64 entry_ns)
{
	CUresult r = VGPU_OPS.submit(work->comm->device, work->calls[0].stream, &work_external,
				     work, entry_ns);

	if (r == CUDA_SUCCESS)
		return ncclSuccess;
	free(work);
	return ncclUnhandledCudaError;
}

ncclResult_t calls_submit(struct call *calls, u32 nr, u64 entry_ns)
{
	ncclResult_t r = ncclSuccess;

	while (nr && r == ncclSuccess) {
		struct work *work = work_take(calls, &nr);

		if (!work)
			return ncclSystemError;
		if (!work_fits(work)) {
			free(work);
			return ncclInvalidUsage;
		}
		r = work_submit(work, entry_ns);
	}
	return r;
}
