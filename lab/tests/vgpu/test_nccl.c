/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests collectives between processes; linked with libnccl and, with VGPU_HIP, with librccl. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#ifdef VGPU_HIP
#include "vgpu/include/vgpu_hip.h"
#define RT(name) hip##name
#else
#include "vgpu/include/vgpu_cudart.h"
#define RT(name) cuda##name
#endif
#include "vgpu/include/vgpu_nccl.h"

#define NR_RANKS 4

/* Data that the ranks of a test share with the parent. */
static struct {
	ncclUniqueId id;
	atomic_int nr_ready;
	pid_t pids[NR_RANKS];
	u64 entered_ns[NR_RANKS];
	u64 returned_ns[NR_RANKS];
	u64 left_ns[NR_RANKS];
} *shared;

static void new_id(void)
{
	CHECK(!ncclGetUniqueId(&shared->id));
	shared->nr_ready = 0;
}

/* The last rank joins after the other ranks have checked the state without it. */
static void await_others(void)
{
	while (shared->nr_ready < NR_RANKS - 1)
		sleep_ms(1);
}

/* The end of the rank's latest collective over this many bytes, from its log. */
static u64 collective_end_ns(int rank, u64 bytes)
{
	struct truth_file file;
	u64 end = 0;

	harness_log(shared->pids[rank], &file);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *r = &file.records[i];

		if (r->kind == TRUTH_COLLECTIVE && r->b == bytes && r->end_ns > end)
			end = r->end_ns;
	}
	truth_file_done(&file);
	assert_true(end > 0);
	return end;
}

static ncclComm_t rank_init(int rank)
{
	ncclComm_t comm;

	shared->pids[rank] = getpid();
	CHECK(!RT(SetDevice)(rank % 4));
	/* With more ranks than CPUs, a spinning rank would delay the other ranks. */
	CHECK(!RT(SetDeviceFlags)(RT(DeviceScheduleBlockingSync)));
	CHECK(!ncclCommInitRank(&comm, NR_RANKS, shared->id, rank));
	return comm;
}

static void all_reduce(ncclComm_t comm, size_t floats, RT(Stream_t) stream)
{
	CHECK(!ncclAllReduce(NULL, NULL, floats, ncclFloat32, ncclSum, comm, stream));
}

/* Rank 3 arrives late; 40 MB at 1 GB/s take 40 ms more. */
static void late_rank(int rank)
{
	ncclComm_t comm = rank_init(rank);
	int count, user, device;

	CHECK(!ncclCommCount(comm, &count) && count == NR_RANKS);
	CHECK(!ncclCommUserRank(comm, &user) && user == rank);
	CHECK(!ncclCommCuDevice(comm, &device) && device == rank % 4);
	if (rank == 1)
		CHECK(!RT(SetDeviceFlags)(RT(DeviceScheduleSpin)));
	if (rank == 2)
		CHECK(!RT(SetDeviceFlags)(RT(DeviceScheduleYield)));
	all_reduce(comm, 1, NULL);
	CHECK(!RT(DeviceSynchronize)());
	if (rank == 3)
		await_others();
	shared->entered_ns[rank] = truth_now_ns();
	all_reduce(comm, 10000000, NULL);
	shared->returned_ns[rank] = truth_now_ns();
	if (rank != 3) {
		CHECK(RT(StreamQuery)(NULL) == RT(ErrorNotReady));
		shared->nr_ready++;
	}
	CHECK(!RT(StreamSynchronize)(NULL));
	shared->left_ns[rank] = truth_now_ns();
	CHECK(!ncclCommDestroy(comm));
}

static void test_ends_after_the_last_rank(void **state)
{
	new_id();
	children_run(late_rank, NR_RANKS);
	for (int i = 0; i < NR_RANKS; i++) {
		u64 end = collective_end_ns(i, 40000000);

		assert_in_range(end, shared->entered_ns[3] + 40 * MS,
				shared->returned_ns[3] + 40 * MS);
		assert_true(shared->left_ns[i] >= end);
	}
}

/* Work behind a collective waits for it, on the same stream and through events. */
static void chained(int rank)
{
	ncclComm_t comm = rank_init(rank);
	RT(Stream_t) a, b;
	RT(Event_t) before, after, end;
	u64 ns = 10 * MS;
	void *args[] = { &ns };
	float ms;

	CHECK(!RT(StreamCreateWithFlags)(&a, 1) && !RT(StreamCreateWithFlags)(&b, 1));
	CHECK(!RT(EventCreate)(&before) && !RT(EventCreate)(&after) && !RT(EventCreate)(&end));
	if (rank == 0)
		await_others();
	for (int i = 0; i < 20; i++)
		all_reduce(comm, 250000, a); /* 1 ms each */
	CHECK(!RT(EventRecord)(before, a));
	CHECK(!RT(StreamWaitEvent)(b, before, 0));
	CHECK(!RT(LaunchKernel)((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, b));
	CHECK(!RT(EventRecord)(after, b));
	CHECK(!RT(StreamWaitEvent)(a, after, 0));
	all_reduce(comm, 1250000, a); /* 5 ms */
	CHECK(!RT(EventRecord)(end, a));
	if (rank != 0) {
		CHECK(RT(EventElapsedTime)(&ms, before, end) == RT(ErrorNotReady));
		shared->nr_ready++;
	}
	CHECK(!RT(EventSynchronize)(end));
	CHECK(!RT(EventElapsedTime)(&ms, before, after) && ms > 9.99);
	/* Rank 0 may have queued the kernel too late; the other ranks were ahead of it. */
	CHECK(rank == 0 || ms < 10.01);
	CHECK(!RT(EventElapsedTime)(&ms, after, end) && ms > 4.99);
	CHECK(!RT(StreamDestroy)(a) && !RT(StreamDestroy)(b));
	CHECK(!ncclCommDestroy(comm));
}

static void test_work_behind_a_collective(void **state)
{
	new_id();
	children_run(chained, NR_RANKS);
}

static void every_op(int rank)
{
	ncclComm_t comm = rank_init(rank);
	ncclResult_t error;

	for (int i = 0; i < 50; i++) {
		CHECK(!ncclBroadcast(NULL, NULL, 100, ncclInt8, 1, comm, NULL));
		CHECK(!ncclReduce(NULL, NULL, 100, ncclFloat64, ncclMax, 2, comm, NULL));
		CHECK(!ncclAllGather(NULL, NULL, 100, ncclBfloat16, comm, NULL));
		CHECK(!ncclReduceScatter(NULL, NULL, 100, ncclFloat16, ncclSum, comm, NULL));
	}
	CHECK(ncclBroadcast(NULL, NULL, 1, ncclInt8, NR_RANKS, comm, NULL) == ncclInvalidArgument);
	CHECK(ncclSend(NULL, 1, (ncclDataType_t)99, 0, comm, NULL) == ncclInvalidArgument);
	CHECK(!RT(DeviceSynchronize)());
	CHECK(!ncclCommGetAsyncError(comm, &error) && error == ncclSuccess);
	CHECK(!ncclCommDestroy(comm));
}

static void test_every_operation(void **state)
{
	new_id();
	children_run(every_op, NR_RANKS);
}

/* A ring in a group: every rank sends before any rank has received. */
static void ring(int rank)
{
	ncclComm_t comm = rank_init(rank);

	for (int i = 0; i < 20; i++) {
		CHECK(!ncclGroupStart());
		CHECK(!ncclSend(NULL, 1000, ncclInt8, (rank + 1) % NR_RANKS, comm, NULL));
		CHECK(!ncclRecv(NULL, 1000, ncclInt8, (rank + NR_RANKS - 1) % NR_RANKS, comm,
				NULL));
		CHECK(!ncclSend(NULL, 10, ncclInt8, rank, comm, NULL));
		CHECK(!ncclRecv(NULL, 10, ncclInt8, rank, comm, NULL));
		CHECK(!ncclGroupEnd());
	}
	/* Outside a group: a pipeline through the ranks, 30 ms each. */
	if (rank > 0)
		CHECK(!ncclRecv(NULL, 30000000, ncclInt8, rank - 1, comm, NULL));
	if (rank < NR_RANKS - 1)
		CHECK(!ncclSend(NULL, 30000000, ncclInt8, rank + 1, comm, NULL));
	CHECK(!RT(DeviceSynchronize)());
	CHECK(ncclGroupEnd() == ncclInvalidUsage);
	CHECK(!ncclCommDestroy(comm));
}

static void test_send_and_receive(void **state)
{
	new_id();
	children_run(ring, NR_RANKS);
	/* The last call of each rank is a send, except for the last rank. */
	for (int i = 1; i < NR_RANKS - 1; i++)
		assert_true(collective_end_ns(i, 30000000) >=
			    collective_end_ns(i - 1, 30000000) + 30 * MS);
	assert_int_equal(collective_end_ns(NR_RANKS - 1, 30000000),
			 collective_end_ns(NR_RANKS - 2, 30000000));
}

/* Splits even and odd ranks, in reverse order; the second time rank 3 does not take part. */
static void split(int rank)
{
	ncclComm_t comm = rank_init(rank), half, most;
	int count, user;

	CHECK(!ncclCommSplit(comm, rank % 2, -rank, &half, NULL));
	CHECK(!ncclCommCount(half, &count) && count == 2);
	CHECK(!ncclCommUserRank(half, &user) && user == (rank < 2));
	all_reduce(half, 1000, NULL);
	CHECK(!ncclCommSplit(comm, rank == 3 ? NCCL_SPLIT_NOCOLOR : 7, 0, &most, NULL));
	if (rank == 3) {
		CHECK(!most);
	} else {
		CHECK(!ncclCommCount(most, &count) && count == 3);
		CHECK(!ncclCommUserRank(most, &user) && user == rank);
		all_reduce(most, 1000, NULL);
		CHECK(!RT(DeviceSynchronize)());
		CHECK(!ncclCommDestroy(most));
	}
	CHECK(!RT(DeviceSynchronize)());
	CHECK(!ncclCommDestroy(half));
	CHECK(!ncclCommDestroy(comm));
}

static void test_split(void **state)
{
	new_id();
	children_run(split, NR_RANKS);
}

/* All ranks are in one thread: only a group can start them and queue their work. */
static void init_all(int index)
{
	ncclComm_t comms[NR_RANKS], parts[NR_RANKS];
	RT(Stream_t) streams[NR_RANKS];
	int devices[NR_RANKS] = { 3, 2, 1, 0 }, device, count;

	CHECK(!ncclCommInitAll(comms, NR_RANKS, devices));
	for (int i = 0; i < NR_RANKS; i++) {
		CHECK(!ncclCommCuDevice(comms[i], &device) && device == devices[i]);
		CHECK(!RT(SetDevice)(device) && !RT(StreamCreate)(&streams[i]));
	}
	CHECK(!ncclGroupStart());
	for (int i = 0; i < NR_RANKS; i++)
		all_reduce(comms[i], 1000, streams[i]);
	CHECK(!ncclGroupEnd());
	for (int i = 0; i < NR_RANKS; i++)
		CHECK(!RT(StreamSynchronize)(streams[i]));
	CHECK(!ncclGroupStart());
	for (int i = 0; i < NR_RANKS; i++)
		CHECK(!ncclCommSplit(comms[i], i / 2, 0, &parts[i], NULL));
	CHECK(!ncclGroupEnd());
	for (int i = 0; i < NR_RANKS; i++) {
		CHECK(!ncclCommCount(parts[i], &count) && count == 2);
		CHECK(!ncclCommDestroy(parts[i]) && !ncclCommDestroy(comms[i]));
	}
}

static void test_init_all(void **state)
{
	children_run(init_all, 1);
}

/* Rank 1 is killed: the other ranks are notified, and abort ends their wait. */
static void lonely(int rank)
{
	ncclComm_t comm = rank_init(rank);
	ncclResult_t error = ncclSuccess;

	if (rank == 1)
		raise(SIGKILL);
	all_reduce(comm, 1000, NULL);
	while (error == ncclSuccess) {
		CHECK(RT(StreamQuery)(NULL) == RT(ErrorNotReady));
		CHECK(!ncclCommGetAsyncError(comm, &error));
		sleep_ms(20);
	}
	CHECK(error == ncclRemoteError);
	CHECK(!ncclCommAbort(comm));
	CHECK(!RT(DeviceSynchronize)());
}

static void test_killed_rank_is_reported(void **state)
{
	pid_t pids[NR_RANKS];
	int status;

	new_id();
	for (int i = 0; i < NR_RANKS; i++)
		pids[i] = child_start(lonely, i);
	assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
	for (int i = 0; i < NR_RANKS; i++)
		if (i != 1)
			child_join(pids[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_after_the_last_rank),
		cmocka_unit_test(test_work_behind_a_collective),
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_send_and_receive),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_init_all),
		cmocka_unit_test(test_killed_rank_is_reported),
	};

	harness_start("4", "1e9");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu nccl", tests, NULL, NULL));
}
