/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Captures and graphs: work, streams, host functions and collectives inside of them. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nccl.h"

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

/* Ends the capture and makes a graph of it that can be launched. */
static cudaGraphExec_t exec_of(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	return exec;
}

static void test_replay(void **state)
{
	cudaStream_t stream = stream_open();
	enum cudaStreamCaptureStatus status;
	cudaGraphExec_t exec;
	struct work work[4];
	u64 start = truth_now_ns();

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaStreamIsCapturing(stream, &status));
	assert_int_equal(status, cudaStreamCaptureStatusActive);
	OK(busy(15 * MS, stream));
	OK(busy(10 * MS, stream));
	assert_int_equal(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
	assert_int_equal(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported);
	exec = exec_of(stream);
	OK(cudaStreamIsCapturing(stream, &status));
	assert_int_equal(status, cudaStreamCaptureStatusNone);
	/* Captured work did not run. */
	OK(cudaStreamQuery(stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	work_read(start, stream, work, 4);
	for (int i = 0; i < 4; i++) {
		work_check(&work[i], i ? work[i - 1].end_ns : 0, i % 2 ? 10 * MS : 15 * MS);
		assert_int_equal(work[i].entered_ns, work[i & ~1].entered_ns);
	}
	/* The work of one launch follows without a gap, however long the replay takes. */
	assert_int_equal(work[0].end_ns, work[1].start_ns);
	assert_true(truth_now_ns() >= work[3].end_ns);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaStreamDestroy(stream));
	cudaGetLastError();
}

/* A second stream takes part in the capture and runs beside the first one. */
static void test_streams_of_a_capture(void **state)
{
	cudaStream_t a = stream_open(), b = stream_open();
	cudaEvent_t fork, join;
	cudaGraphExec_t exec;
	struct work work[4];
	u64 start = truth_now_ns();

	OK(cudaEventCreate(&fork));
	OK(cudaEventCreate(&join));
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	OK(busy(10 * MS, a));
	OK(cudaEventRecord(fork, a));
	OK(cudaStreamWaitEvent(b, fork, 0));
	OK(busy(40 * MS, b));
	OK(busy(20 * MS, a));
	OK(cudaEventRecord(join, b));
	assert_int_equal(cudaEventQuery(join), cudaErrorCapturedEvent);
	assert_int_equal(cudaEventSynchronize(join), cudaErrorCapturedEvent);
	OK(cudaStreamWaitEvent(a, join, 0));
	OK(busy(5 * MS, a));
	exec = exec_of(a);
	OK(cudaGraphLaunch(exec, a));
	OK(cudaStreamSynchronize(a));
	/* All work of a graph counts for the stream of its launch; the log is by start. */
	work_read(start, a, work, 4);
	work_check(&work[0], 0, 10 * MS);
	for (int i = 1; i < 3; i++)
		assert_int_equal(work[i].start_ns, work[0].end_ns);
	assert_int_equal(work[1].end_ns + work[2].end_ns, 2 * work[0].end_ns + 60 * MS);
	assert_int_equal(work[3].start_ns, work[0].end_ns + 40 * MS);
	assert_true(truth_now_ns() >= work[3].end_ns);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaEventDestroy(fork));
	OK(cudaEventDestroy(join));
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
	cudaGetLastError();
}

static void test_capture_errors(void **state)
{
	cudaStream_t a = stream_open(), b = stream_open();
	cudaEvent_t event, outside;
	cudaGraph_t graph;

	OK(cudaEventCreate(&event));
	OK(cudaEventCreate(&outside));
	OK(cudaEventRecord(outside, b));
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	assert_int_equal(cudaStreamWaitEvent(a, outside, 0), cudaErrorStreamCaptureIsolation);
	OK(busy(MS, a));
	OK(cudaEventRecord(event, a));
	OK(cudaStreamWaitEvent(b, event, 0));
	OK(busy(MS, b));
	assert_int_equal(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureUnmatched);
	assert_int_equal(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
	/* Both streams are back to normal. */
	OK(cudaStreamQuery(a));
	OK(cudaStreamQuery(b));
	assert_int_equal(cudaStreamEndCapture(a, &graph), cudaErrorIllegalState);
	assert_int_equal(cudaStreamWaitEvent(a, event, 0), cudaErrorCapturedEvent);
	assert_int_equal(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
			 cudaErrorStreamCaptureUnsupported);
	OK(cudaEventDestroy(event));
	OK(cudaEventDestroy(outside));
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
	cudaGetLastError();
}

struct called {
	atomic_int nr;
	atomic_ullong at_ns;
	atomic_int tid;
};

static void host_call(void *data)
{
	struct called *called = data;

	called->at_ns = truth_now_ns();
	called->tid = gettid();
	called->nr++;
}

static void test_host_function(void **state)
{
	cudaStream_t stream = stream_open();
	struct called called = {};
	struct work work[2];
	u64 start = truth_now_ns();

	OK(busy(50 * MS, stream));
	OK(cudaLaunchHostFunc(stream, host_call, &called));
	OK(busy(10 * MS, stream));
	OK(cudaStreamSynchronize(stream));
	work_read(start, stream, work, 2);
	assert_int_equal(called.nr, 1);
	assert_int_not_equal(called.tid, gettid());
	/* Between the work before it and the work behind it. */
	assert_true(called.at_ns >= work[0].end_ns);
	assert_true(work[1].start_ns >= called.at_ns);
	assert_int_equal(work[1].end_ns - work[1].start_ns, 10 * MS);
	assert_int_equal(cudaLaunchHostFunc(stream, NULL, NULL), cudaErrorInvalidValue);
	OK(cudaStreamDestroy(stream));
	cudaGetLastError();
}

static void test_host_function_in_a_graph(void **state)
{
	cudaStream_t stream = stream_open();
	struct called called = {};
	cudaGraphExec_t exec;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaLaunchHostFunc(stream, host_call, &called));
	exec = exec_of(stream);
	assert_int_equal(called.nr, 0);
	for (int i = 1; i <= 3; i++) {
		OK(cudaGraphLaunch(exec, stream));
		OK(cudaStreamSynchronize(stream));
		assert_int_equal(called.nr, i);
	}
	OK(cudaGraphExecDestroy(exec));
	OK(cudaStreamDestroy(stream));
}

#define NR_REPLAYS 3

static struct {
	ncclUniqueId id;
	atomic_int nr_ready;
	pid_t pids[2];
	u64 late_ns; /* when the second rank launched its last graph */
} *shared;

/* Both ranks capture one collective and replay it; the second rank is late at the last one. */
static void rank_run(int rank)
{
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	ncclComm_t comm;

	shared->pids[rank] = getpid();
	CHECK(!cudaSetDevice(rank));
	CHECK(!cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CHECK(!ncclCommInitRank(&comm, 2, shared->id, rank));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(!busy(2 * MS, stream));
	CHECK(!ncclAllReduce(NULL, NULL, 250000, ncclFloat32, ncclSum, comm, stream));
	CHECK(!busy(3 * MS, stream));
	CHECK(!cudaStreamEndCapture(stream, &graph));
	CHECK(!cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < NR_REPLAYS; i++) {
		if (rank == 1 && i == NR_REPLAYS - 1) {
			while (!shared->nr_ready)
				sleep_ms(1);
			shared->late_ns = truth_now_ns();
		}
		CHECK(!cudaGraphLaunch(exec, stream));
	}
	if (rank == 0) {
		/* The last collective waits for the other rank. */
		CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
		shared->nr_ready++;
	}
	CHECK(!cudaStreamSynchronize(stream));
	CHECK(!cudaGraphExecDestroy(exec) && !cudaGraphDestroy(graph));
	CHECK(!ncclCommDestroy(comm));
}

static u32 collectives(pid_t pid, struct truth_record *ret)
{
	struct truth_file file;
	u32 nr = 0;

	harness_log(pid, &file);
	for (u64 i = 0; i < file.nr_records; i++)
		if (file.records[i].kind == TRUTH_COLLECTIVE && nr++ < NR_REPLAYS)
			ret[nr - 1] = file.records[i];
	truth_file_done(&file);
	return nr;
}

static void test_collective_in_a_graph(void **state)
{
	struct truth_record ranks[2][NR_REPLAYS];
	u64 start = truth_now_ns();

	assert_int_equal(ncclGetUniqueId(&shared->id), ncclSuccess);
	children_run(rank_run, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(collectives(shared->pids[i], ranks[i]), NR_REPLAYS);
	for (int i = 0; i < NR_REPLAYS; i++) {
		/* 1 MB at 1 GB/s after the last arrival, the same for both. */
		assert_int_equal(ranks[0][i].end_ns, ranks[1][i].end_ns);
		assert_true(ranks[0][i].end_ns >= ranks[0][i].start_ns + MS);
		/* It starts with the launch of its replay. */
		assert_true(ranks[0][i].start_ns > (i ? ranks[0][i - 1].start_ns : start));
	}
	assert_true(ranks[0][NR_REPLAYS - 1].end_ns >= shared->late_ns + 3 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: a process that used a device before a fork cannot use it after. */
		cmocka_unit_test(test_collective_in_a_graph),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_streams_of_a_capture),
		cmocka_unit_test(test_capture_errors),
		cmocka_unit_test(test_host_function),
		cmocka_unit_test(test_host_function_in_a_graph),
	};

	harness_start("2", "1e9");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu graphs", tests, NULL, NULL));
}
