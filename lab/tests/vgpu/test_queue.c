/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The launch queue of a stream: a launch blocks while as much work waits as it has room for. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "truth/check.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nccl.h"

#define QUEUE	 8
#define OK(call) assert_int_equal(call, cudaSuccess)

static cudaError_t busy(u64 ns, cudaStream_t stream)
{
	void *args[] = { &ns };

	return cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, stream);
}

static cudaStream_t stream_open(void)
{
	cudaStream_t stream;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

/* The time in which the launch with this start was blocked; 0: it was not. */
static u64 blocked_ns(const struct work *work)
{
	struct truth_file file;
	u64 ns = 0;

	harness_log(getpid(), &file);
	for (u64 i = 0; i < file.nr_records; i++) {
		const struct truth_record *r = &file.records[i];

		if (r->kind == TRUTH_BLOCKED && r->start_ns >= work->entered_ns &&
		    r->end_ns <= work->returned_ns)
			ns += r->end_ns - r->start_ns;
	}
	truth_file_done(&file);
	return ns;
}

/*
 * Each launch returns no earlier than the end of the work QUEUE places before it. The
 * first work is long, so that the queue is full whenever this process gets a CPU.
 */
static void test_full_queue_blocks(void **state)
{
	cudaStream_t stream = stream_open();
	struct work work[3 * QUEUE];
	u64 start = truth_now_ns();
	u32 nr_blocked = 0;

	for (int i = 0; i < 3 * QUEUE; i++)
		OK(busy(i ? MS : 500 * MS, stream));
	OK(cudaStreamSynchronize(stream));
	work_read(start, stream, work, 3 * QUEUE);
	for (int i = 0; i < 3 * QUEUE; i++) {
		u64 blocked = blocked_ns(&work[i]);

		if (i >= QUEUE)
			assert_true(work[i].returned_ns >= work[i - QUEUE].end_ns);
		/* Only a launch that comes before there is room is blocked. */
		assert_true(!blocked ||
			    (i >= QUEUE && work[i].entered_ns < work[i - QUEUE].end_ns));
		nr_blocked += blocked > 0;
		work_check(&work[i], i ? work[i - 1].end_ns : 0, i ? MS : 500 * MS);
	}
	assert_true(nr_blocked > 0);
	OK(cudaStreamDestroy(stream));
}

/* Time in which this thread had a CPU or waited for one, as opposed to being asleep. */
static u64 awake_ns(void)
{
	unsigned long long on_cpu, waiting;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	CHECK(file && fscanf(file, "%llu %llu", &on_cpu, &waiting) == 2);
	fclose(file);
	return on_cpu + waiting;
}

/* The caller polls, whatever the flags of the context say about syncs. */
static void blocked_caller(int index)
{
	cudaStream_t stream;
	u64 awake, wall;

	CHECK(!cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < QUEUE; i++)
		CHECK(!busy(i ? 1 : 500 * MS, stream));
	awake = awake_ns();
	wall = truth_now_ns();
	CHECK(!busy(1, stream));
	wall = truth_now_ns() - wall;
	awake = awake_ns() - awake;
	/* The kernel updates the first figure at every tick. */
	CHECK(awake > wall / 2 || wall < 50 * MS);
}

static void test_blocked_launch_spins(void **state)
{
	child_join(child_start(blocked_caller, 0));
}

static void test_queue_belongs_to_its_stream(void **state)
{
	cudaStream_t full = stream_open(), empty = stream_open();
	struct work work;
	u64 start = truth_now_ns();

	for (int i = 0; i < QUEUE; i++)
		OK(busy(1000 * NSEC_PER_SEC, full));
	OK(busy(MS, empty));
	OK(cudaStreamSynchronize(empty));
	work_read(start, empty, &work, 1);
	assert_int_equal(blocked_ns(&work), 0);
	/* Events take no entry. */
	for (int i = 0; i < 3 * QUEUE; i++) {
		cudaEvent_t event;

		OK(cudaEventCreate(&event));
		OK(cudaEventRecord(event, full));
		OK(cudaEventDestroy(event));
	}
	OK(cudaStreamDestroy(full));
	OK(cudaStreamDestroy(empty));
}

/* Copies, sets and graphs take an entry, a graph only one. */
static void test_all_work_takes_an_entry(void **state)
{
	cudaStream_t stream = stream_open();
	struct work work[QUEUE + 16];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	char host[64];
	void *device;
	u64 start;

	OK(cudaMalloc(&device, sizeof(host)));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 16; i++)
		OK(busy(1, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	start = truth_now_ns();
	OK(busy(300 * MS, stream));
	OK(cudaMemcpyAsync(device, host, sizeof(host), cudaMemcpyHostToDevice, stream));
	OK(cudaMemsetAsync(device, 0, sizeof(host), stream));
	OK(cudaGraphLaunch(exec, stream));
	for (int i = 4; i < QUEUE + 1; i++)
		OK(busy(1, stream));
	OK(cudaStreamSynchronize(stream));
	work_read(start, stream, work, QUEUE + 16);
	/* The queue was full exactly once, for the last launch. */
	for (int i = 0; i < QUEUE + 15; i++)
		assert_int_equal(blocked_ns(&work[i]), 0);
	assert_true(work[QUEUE + 15].entered_ns >= work[0].end_ns ||
		    blocked_ns(&work[QUEUE + 15]) > 0);
	assert_true(work[QUEUE + 15].returned_ns >= work[0].end_ns);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaFree(device));
	OK(cudaStreamDestroy(stream));
}

static ncclUniqueId id;

/* Collectives fill the queue, too; the second rank comes when the first one has filled its own. */
static void rank_run(int rank)
{
	cudaStream_t stream;
	ncclComm_t comm;

	CHECK(!cudaSetDevice(rank));
	CHECK(!ncclCommInitRank(&comm, 2, id, rank));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	if (rank == 1)
		sleep_ms(50);
	for (int i = 0; i < 4 * QUEUE; i++)
		CHECK(!ncclAllReduce(NULL, NULL, 1000, ncclFloat32, ncclSum, comm, stream));
	CHECK(!cudaStreamSynchronize(stream));
	CHECK(!ncclCommDestroy(comm));
}

static void test_collectives_in_a_full_queue(void **state)
{
	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	children_run(rank_run, 2);
}

static void test_log_is_consistent(void **state)
{
	struct truth_dir dir;

	assert_int_equal(truth_dir_read(harness_truth_dir(), &dir), 0);
	assert_int_equal(truth_check(&dir), 0);
	truth_dir_done(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: a process that used a device before a fork cannot use it after. */
		cmocka_unit_test(test_collectives_in_a_full_queue),
		cmocka_unit_test(test_blocked_launch_spins),
		cmocka_unit_test(test_full_queue_blocks),
		cmocka_unit_test(test_all_work_takes_an_entry),
		cmocka_unit_test(test_queue_belongs_to_its_stream),
		cmocka_unit_test(test_log_is_consistent),
	};

	harness_start("2", "1e9");
	setenv("VGPU_QUEUE", "8", 1);
	return harness_end(cmocka_run_group_tests_name("vgpu queue", tests, NULL, NULL));
}
