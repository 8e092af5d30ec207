/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/macros.h"
#include "signals/comms.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef VGPU_HIP
#include "vgpu/include/vgpu_hip.h"
#define RT(name) hip##name
#else
#include "vgpu/include/vgpu_cudart.h"
#define RT(name) cuda##name
#endif
#include "property/random.h"

#define NR_OPERATIONS 200
#define NR_SPLITS     12
#define MAX_COUNT     (1ULL << 40)

/* The ranks of one process; one thread makes the calls of all of them. */
struct part {
	struct truth *truth;
	struct random everyone; /* the same numbers in every process */
	struct random own;
	u32 nr;
	u32 first_rank;
	ncclComm_t comm[NR_RANKS];
	RT(Stream_t) stream[NR_RANKS];
};

struct wish {
	int color;
	int key;
};

static const u8 type_bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

void truth_compare(struct truth *truth)
{
	u32 stage = ++truth->stage;

	while (shared->nr_compared < stage)
		usleep(1000);
}

void truth_add_comm(struct truth *truth, ncclComm_t comm, u32 rank, u32 nr_ranks)
{
	truth->comm[truth->nr_comms++] =
		(struct true_comm){ .handle = (u64)comm, .rank = rank, .nr_ranks = nr_ranks };
}

void truth_tag_comm(struct truth *truth, u32 tag)
{
	truth->comm[truth->nr_comms - 1].tag = tag;
}

static void truth_count(struct truth *truth, ncclComm_t comm, u32 operation, u64 bytes)
{
	u32 i = 0;

	while (truth->comm[i].handle != (u64)comm)
		i++;
	truth->comm[i].nr++;
	truth->comm[i].operation = operation;
	truth->comm[i].bytes = bytes;
}

void truth_destroy_comm(struct truth *truth, ncclComm_t comm, bool abort)
{
	u32 i = 0;

	while (truth->comm[i].handle != (u64)comm)
		i++;
	truth->comm[i] = truth->comm[--truth->nr_comms];
	CHECK(!(abort ? ncclCommAbort(comm) : ncclCommDestroy(comm)));
}

void truth_reduce(struct truth *truth, ncclComm_t comm)
{
	CHECK(!ncclAllReduce(NULL, NULL, 1, ncclUint8, ncclSum, comm, NULL));
	CHECK(!RT(DeviceSynchronize)());
	truth->nr[DETAIL_ALL_REDUCE - COLLECTIVE_FIRST]++;
	truth->bytes[DETAIL_ALL_REDUCE - COLLECTIVE_FIRST]++;
	truth_count(truth, comm, DETAIL_ALL_REDUCE - COLLECTIVE_FIRST, 1);
}

/* A group is needed for several ranks and allowed for one. */
static bool group_start(struct part *part)
{
	bool grouped = part->nr > 1 || random_below(&part->own, 2);

	if (grouped)
		CHECK(!ncclGroupStart());
	return grouped;
}

static void group_end(bool grouped)
{
	if (grouped)
		CHECK(!ncclGroupEnd());
}

static ncclResult_t call(u32 op, u64 count, ncclDataType_t type, int peer, ncclComm_t comm,
			 RT(Stream_t) stream)
{
	ncclStream_t on = (ncclStream_t)stream;

	switch (op) {
	case DETAIL_ALL_REDUCE: return ncclAllReduce(NULL, NULL, count, type, ncclSum, comm, on);
	case DETAIL_BROADCAST: return ncclBroadcast(NULL, NULL, count, type, peer, comm, on);
	case DETAIL_REDUCE: return ncclReduce(NULL, NULL, count, type, ncclMax, peer, comm, on);
	case DETAIL_ALL_GATHER: return ncclAllGather(NULL, NULL, count, type, comm, on);
	case DETAIL_REDUCE_SCATTER:
		return ncclReduceScatter(NULL, NULL, count, type, ncclSum, comm, on);
	case DETAIL_SEND: return ncclSend(NULL, count, type, peer, comm, on);
	default: return ncclRecv(NULL, count, type, peer, comm, on);
	}
}

static void call_ok(struct part *part, u32 op, u64 count, u32 type, u32 peer, u32 i)
{
	CHECK(!call(op, count, (ncclDataType_t)type, (int)peer, part->comm[i], part->stream[i]));
	part->truth->nr[op - COLLECTIVE_FIRST]++;
	part->truth->bytes[op - COLLECTIVE_FIRST] += count * type_bytes[type];
	if (op != DETAIL_SEND && op != DETAIL_RECV)
		truth_count(part->truth, part->comm[i], op - COLLECTIVE_FIRST,
			    count * type_bytes[type]);
}

static void collective(struct part *part, u32 op)
{
	u64 count = random_u64(&part->everyone) % MAX_COUNT;
	u32 type = random_below(&part->everyone, sizeof(type_bytes));
	u32 root = random_below(&part->everyone, NR_RANKS);
	bool grouped = group_start(part);

	for (u32 i = 0; i < part->nr; i++)
		call_ok(part, op, count, type, root, i);
	group_end(grouped);
}

/* Every rank sends to the next rank; the receiver can compute the sizes. */
static void ring(struct part *part)
{
	u64 count = random_u64(&part->everyone) % MAX_COUNT;
	u32 type = random_below(&part->everyone, sizeof(type_bytes));

	CHECK(!ncclGroupStart());
	for (u32 i = 0; i < part->nr; i++) {
		u32 rank = part->first_rank + i, before = (rank + NR_RANKS - 1) % NR_RANKS;

		call_ok(part, DETAIL_SEND, count + rank, type, (rank + 1) % NR_RANKS, i);
		call_ok(part, DETAIL_RECV, count + before, type, before, i);
	}
	CHECK(!ncclGroupEnd());
}

static void operate(struct part *part)
{
	for (u32 n = 0; n < NR_OPERATIONS; n++) {
		u32 op = COLLECTIVE_FIRST + random_below(&part->everyone, COLLECTIVE_NR - 1);

		if (op == DETAIL_SEND || op == DETAIL_RECV)
			ring(part);
		else
			collective(part, op);
		/* A failed call is not counted. */
		if (random_below(&part->own, 4) == 0)
			CHECK(call(op, 1, (ncclDataType_t)99, 0, part->comm[0], part->stream[0]));
		if (n % 16 == 15)
			for (u32 i = 0; i < part->nr; i++)
				CHECK(!RT(StreamSynchronize)(part->stream[i]));
	}
	for (u32 i = 0; i < part->nr; i++)
		CHECK(!RT(StreamSynchronize)(part->stream[i]));
}

/* First halves in reverse order, then all ranks except one, then random. */
static void wish(struct part *part, u32 n, struct wish *wishes)
{
	for (u32 rank = 0; rank < NR_RANKS; rank++) {
		s32 color = (s32)random_below(&part->everyone, 3) - 1;
		s32 key = random_below(&part->everyone, 2) ? (s32)random_u64(&part->everyone)
							   : (s32)random_below(&part->everyone, 2);

		if (n == 0)
			wishes[rank] = (struct wish){ (int)rank % 2, -(int)rank };
		else if (n == 1)
			wishes[rank] = (struct wish){ rank == 1 ? NCCL_SPLIT_NOCOLOR : 7, 0 };
		else
			wishes[rank] = (struct wish){ color, key };
	}
}

/* The new rank of `rank`, from the documentation and from the library. */
static void expect_split(struct truth *truth, const struct wish *wishes, u32 rank, ncclComm_t comm)
{
	u32 place = 0, nr = 0;
	int said_rank, said_nr;

	if (wishes[rank].color == NCCL_SPLIT_NOCOLOR) {
		CHECK(!comm);
		return;
	}
	for (u32 i = 0; i < NR_RANKS; i++) {
		if (wishes[i].color != wishes[rank].color)
			continue;
		nr++;
		if (wishes[i].key < wishes[rank].key ||
		    (wishes[i].key == wishes[rank].key && i < rank))
			place++;
	}
	CHECK(!ncclCommUserRank(comm, &said_rank) && (u32)said_rank == place);
	CHECK(!ncclCommCount(comm, &said_nr) && (u32)said_nr == nr);
	truth_add_comm(truth, comm, place, nr);
}

static void split_once(struct part *part, u32 n, ncclComm_t *ret)
{
	struct wish wishes[NR_RANKS];
	bool grouped;

	wish(part, n, wishes);
	if (random_below(&part->own, 3) == 0)
		CHECK(ncclCommSplit(part->comm[0], -5, 0, &ret[0], NULL) == ncclInvalidArgument);
	grouped = group_start(part);
	for (u32 i = 0; i < part->nr; i++) {
		const struct wish *mine = &wishes[part->first_rank + i];

		CHECK(!ncclCommSplit(part->comm[i], mine->color, mine->key, &ret[i], NULL));
	}
	group_end(grouped);
	for (u32 i = 0; i < part->nr; i++)
		expect_split(part->truth, wishes, part->first_rank + i, ret[i]);
}

/* The children of a split are split again: all ranks of a child together, in reverse order. */
static void split_children(struct part *part, ncclComm_t *children)
{
	ncclComm_t grandchildren[NR_RANKS] = {};
	int rank, nr;
	bool grouped = group_start(part);

	for (u32 i = 0; i < part->nr; i++) {
		if (!children[i])
			continue;
		CHECK(!ncclCommUserRank(children[i], &rank));
		CHECK(!ncclCommSplit(children[i], 0, -rank, &grandchildren[i], NULL));
	}
	group_end(grouped);
	for (u32 i = 0; i < part->nr; i++) {
		if (!children[i])
			continue;
		CHECK(!ncclCommUserRank(children[i], &rank) && !ncclCommCount(children[i], &nr));
		truth_add_comm(part->truth, grandchildren[i], (u32)(nr - 1 - rank), (u32)nr);
	}
	truth_compare(part->truth);
	for (u32 i = 0; i < part->nr; i++)
		if (grandchildren[i])
			truth_destroy_comm(part->truth, grandchildren[i], false);
}

static void split(struct part *part)
{
	ncclComm_t children[NR_SPLITS][NR_RANKS] = {};

	for (u32 n = 0; n < NR_SPLITS; n++) {
		split_once(part, n, children[n]);
		/* Some splits follow while other ranks are still in the last split. */
		if (n < 2 || n == NR_SPLITS - 1)
			truth_compare(part->truth);
	}
	split_children(part, children[0]);
	for (u32 n = 0; n < NR_SPLITS; n++)
		for (u32 i = 0; i < part->nr; i++)
			if (children[n][i])
				truth_destroy_comm(part->truth, children[n][i], n % 2);
	truth_compare(part->truth);
}

static void part_start(struct part *part, u32 process)
{
	*part = (struct part){
		.truth = &shared->truth[process],
		.everyone = { shared->seed },
		.own = { shared->seed + 1 + process },
		.nr = NR_RANKS / scenario->nr_processes,
	};
	part->first_rank = process * part->nr;
	scenario->init(process, part->comm);
	for (u32 i = 0; i < part->nr; i++) {
		CHECK(!RT(SetDevice)((int)(part->first_rank + i)));
		CHECK(!RT(StreamCreate)(&part->stream[i]));
		truth_add_comm(part->truth, part->comm[i], part->first_rank + i, NR_RANKS);
		truth_tag_comm(part->truth, 1);
	}
	part->truth->rank = part->first_rank;
	part->truth->nr_ranks = NR_RANKS;
	part->truth->nr_local_ranks = part->nr;
}

void ranks_live(int process)
{
	struct part part;

	part_start(&part, (u32)process);
	truth_compare(part.truth);
	operate(&part);
	truth_compare(part.truth);
	split(&part);
	operate(&part);
	truth_compare(part.truth);
	for (u32 i = 0; i < part.nr; i++)
		truth_destroy_comm(part.truth, part.comm[i], false);
	truth_compare(part.truth);
	part.truth->is_done = true;
}

static __attribute__((noinline)) void init_elsewhere(u32 rank, ncclComm_t *comm)
{
	CHECK(!ncclCommInitRank(comm, NR_RANKS, shared->id[0], (int)rank));
}

/* Called from two places, so that the stack beside the unique id differs between ranks. */
void rank_init(u32 rank, ncclComm_t *comm)
{
	CHECK(!RT(SetDevice)((int)rank));
	if (rank % 2)
		init_elsewhere(rank, comm);
	else
		CHECK(!ncclCommInitRank(comm, NR_RANKS, shared->id[0], (int)rank));
}

static void init_rank_config(u32 process, ncclComm_t *comm)
{
	ncclConfig_t config = { .size = sizeof(config) };

	CHECK(!RT(SetDevice)((int)process));
	CHECK(!ncclCommInitRankConfig(comm, NR_RANKS, shared->id[0], (int)process, &config));
}

static void init_all(u32 process, ncclComm_t *comm)
{
	CHECK(!ncclCommInitAll(comm, NR_RANKS, NULL));
}

static void init_group(u32 process, ncclComm_t *comm)
{
	CHECK(!ncclGroupStart());
	for (u32 i = 0; i < 2; i++)
		rank_init(2 * process + i, &comm[i]);
	CHECK(!ncclGroupEnd());
}

struct joiner {
	pthread_t thread;
	u32 rank;
	ncclComm_t *comm;
};

static void *join(void *arg)
{
	struct joiner *joiner = arg;

	rank_init(joiner->rank, joiner->comm);
	return NULL;
}

static void init_threads(u32 process, ncclComm_t *comm)
{
	struct joiner joiners[NR_RANKS];

	for (u32 i = 0; i < NR_RANKS; i++) {
		joiners[i] = (struct joiner){ .rank = i, .comm = &comm[i] };
		CHECK(!pthread_create(&joiners[i].thread, NULL, join, &joiners[i]));
	}
	for (u32 i = 0; i < NR_RANKS; i++)
		pthread_join(joiners[i].thread, NULL);
}

const struct scenario scenarios[] = {
	{ "ncclCommInitRank, 4 processes", 4, rank_init },
	{ "ncclCommInitRankConfig, 4 processes", 4, init_rank_config },
	{ "ncclCommInitAll, 1 process", 1, init_all },
	{ "ncclCommInitRank, 1 process with 4 threads", 1, init_threads },
	{ "ncclCommInitRank in a group, 2 processes with 2 ranks", 2, init_group },
};
const u32 nr_scenarios = ARRAY_SIZE(scenarios);
const struct scenario *scenario;
