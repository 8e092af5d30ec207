/* SPDX-License-Identifier: GPL-2.0-only */

/* Time on the device: order, asynchrony, events, threads, errors, ways to wait. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "harness.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/include/vgpu_cudart.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

static cudaError_t busy(u64 ns, cudaStream_t stream)
{
	void *args[] = { &ns };

	return cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, stream);
}

static void test_launch_is_asynchronous(void **state)
{
	u64 start, returned;

	OK(cudaFree(NULL)); /* the context is there before the clock runs */
	start = truth_now_ns();
	OK(busy(200 * MS, NULL));
	returned = truth_now_ns() - start;
	assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady);
	OK(cudaDeviceSynchronize());
	assert_true(truth_now_ns() - start >= 200 * MS);
	assert_true(returned < 100 * MS);
	OK(cudaStreamQuery(NULL));
	cudaGetLastError();
}

static void test_stream_adds_up(void **state)
{
	cudaStream_t stream;
	u64 start = truth_now_ns();

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 10; i++)
		OK(busy(5 * MS, stream));
	OK(cudaStreamSynchronize(stream));
	assert_in_range(truth_now_ns() - start, 50 * MS, 300 * MS);
	OK(cudaStreamDestroy(stream));
	assert_int_equal(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
}

static void test_streams_overlap(void **state)
{
	cudaStream_t a, b;
	u64 start = truth_now_ns();

	OK(cudaStreamCreate(&a));
	OK(cudaStreamCreate(&b));
	OK(busy(200 * MS, a));
	OK(busy(200 * MS, b));
	OK(cudaStreamSynchronize(a));
	OK(cudaStreamSynchronize(b));
	assert_in_range(truth_now_ns() - start, 200 * MS, 390 * MS);
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
}

static void test_event_orders_streams(void **state)
{
	cudaStream_t a, b;
	cudaEvent_t first, second;
	float ms;

	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaEventCreate(&first));
	OK(cudaEventCreate(&second));
	OK(busy(50 * MS, a));
	OK(cudaEventRecord(first, a));
	OK(cudaStreamWaitEvent(b, first, 0));
	OK(busy(20 * MS, b));
	OK(cudaEventRecord(second, b));
	assert_int_equal(cudaEventQuery(first), cudaErrorNotReady);
	assert_int_equal(cudaEventElapsedTime(&ms, first, second), cudaErrorNotReady);
	OK(cudaEventSynchronize(second));
	OK(cudaEventQuery(first));
	OK(cudaEventElapsedTime(&ms, first, second));
	/* Virtual time is exact: b began the moment a ended. */
	assert_float_equal(ms, 20.0, 0.001);
	OK(cudaEventDestroy(first));
	OK(cudaEventDestroy(second));
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
	cudaGetLastError();
}

static void test_legacy_stream_waits_for_blocking_ones(void **state)
{
	cudaStream_t blocking, other;
	u64 start = truth_now_ns();

	OK(cudaStreamCreate(&blocking));
	OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	OK(busy(600 * MS, other));
	OK(busy(40 * MS, blocking));
	OK(busy(10 * MS, NULL));
	OK(busy(10 * MS, blocking));
	OK(cudaStreamSynchronize(blocking));
	assert_in_range(truth_now_ns() - start, 60 * MS, 500 * MS);
	assert_int_equal(cudaStreamQuery(other), cudaErrorNotReady);
	OK(cudaDeviceSynchronize());
	assert_true(truth_now_ns() - start >= 600 * MS);
	OK(cudaStreamDestroy(blocking));
	OK(cudaStreamDestroy(other));
	cudaGetLastError();
}

static void test_copy_takes_size_over_bandwidth(void **state)
{
	void *device, *host = malloc(50000000);
	u64 start;

	OK(cudaMalloc(&device, 50000000));
	start = truth_now_ns();
	OK(cudaMemcpy(device, host, 50000000, cudaMemcpyHostToDevice));
	assert_in_range(truth_now_ns() - start, 50 * MS, 300 * MS);
	start = truth_now_ns();
	OK(cudaMemcpyAsync(host, device, 50000000, cudaMemcpyDeviceToHost, NULL));
	assert_true(truth_now_ns() - start < 50 * MS);
	OK(cudaStreamSynchronize(NULL));
	assert_true(truth_now_ns() - start >= 50 * MS);
	OK(cudaMemset(device, 0, 1000));
	assert_int_equal(cudaMemset(device, 0, 50000001), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy(host, host, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind)9),
			 cudaErrorInvalidMemcpyDirection);
	OK(cudaFree(device));
	free(host);
	cudaGetLastError();
}

static void test_errors_are_remembered(void **state)
{
	int count;

	OK(cudaGetLastError());
	assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
	assert_int_equal(cudaErrorInvalidDevice, 101);
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 4);
	/* A call that works does not wipe it; asking does. */
	assert_int_equal(cudaPeekAtLastError(), 101);
	assert_int_equal(cudaGetLastError(), 101);
	OK(cudaGetLastError());
	assert_int_equal(cudaMalloc(NULL, 10), 1);
	assert_int_equal(cudaGetLastError(), 1);
	assert_int_equal(
		cudaLaunchKernel(NULL, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, NULL), 98);
	assert_int_equal(cudaLaunchKernel((const void *)test_errors_are_remembered,
					  (dim3){ 0, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, NULL),
			 9);
	assert_int_equal(cudaGetLastError(), 9);
	assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation),
			    "cudaErrorMemoryAllocation");
	assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
	assert_string_equal(cudaGetErrorString(cudaErrorNotReady), "device not ready");
	assert_string_equal(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}

static void *other_thread(void *arg)
{
	int device = -1;

	/* A new thread begins on the first device, with no error. */
	if (cudaGetDevice(&device) || device != 0 || cudaGetLastError())
		return "wrong start";
	if (cudaSetDevice(3) || cudaGetDevice(&device) || device != 3)
		return "wrong choice";
	return cudaSetDevice(77) == cudaErrorInvalidDevice ? NULL : "no error";
}

static void test_device_is_per_thread(void **state)
{
	pthread_t thread;
	void *result;
	int device;

	OK(cudaSetDevice(2));
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	pthread_join(thread, &result);
	assert_null(result);
	OK(cudaGetDevice(&device));
	assert_int_equal(device, 2);
	OK(cudaGetLastError());
	OK(cudaSetDevice(0));
}

static void test_context_stack(void **state)
{
	CUcontext ctx, current;
	CUdevice device;
	CUstream stream;

	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 1), CUDA_SUCCESS);
	assert_int_equal(cuCtxGetDevice(&device), CUDA_SUCCESS);
	assert_int_equal(device, 1);
	assert_int_equal(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	assert_int_equal(cuCtxPopCurrent_v2(&current), CUDA_SUCCESS);
	assert_ptr_equal(current, ctx);
	OK(cudaGetDevice(&device));
	assert_int_equal(device, 0);
	assert_int_equal(cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	assert_int_equal(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	/* Its streams went with it, and the old context is current again. */
	assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	OK(cudaGetDevice(&device));
	assert_int_equal(device, 0);
	assert_int_equal(cuCtxSetCurrent(ctx), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_module_launch(void **state)
{
	CUmodule module;
	CUfunction function;
	u64 ns = 30 * MS, start;
	void *params[] = { &ns };

	assert_int_equal(cuModuleLoadData(&module, "image"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetFunction(&function, module, "busy"), CUDA_SUCCESS);
	start = truth_now_ns();
	assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	assert_in_range(truth_now_ns() - start, 30 * MS, 300 * MS);
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

static void test_graph_has_the_length_of_its_capture(void **state)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	u64 start = truth_now_ns();

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(busy(15 * MS, stream));
	OK(busy(15 * MS, stream));
	assert_int_equal(cudaStreamSynchronize(stream), 900);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaStreamQuery(stream));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	start = truth_now_ns();
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	assert_in_range(truth_now_ns() - start, 60 * MS, 400 * MS);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
	cudaGetLastError();
}

/*
 * What a sync over `ns` costs: CPU in percent of its time, and how often the thread
 * went to sleep. The second does not depend on how busy the machine is: who spins
 * or yields is runnable all the time, even while somebody else has the CPU.
 */
struct cost {
	double cpu;
	long sleeps;
};

static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static struct cost sync_cost(unsigned int flags, u64 ns)
{
	struct cost cost;
	u64 cpu, wall;

	OK(cudaSetDeviceFlags(flags));
	OK(busy(MS, NULL));
	OK(cudaDeviceSynchronize()); /* pages in whatever a sync touches */
	OK(busy(ns, NULL));
	cost.sleeps = sleeps();
	cpu = cpu_ns();
	wall = truth_now_ns();
	OK(cudaDeviceSynchronize());
	wall = truth_now_ns() - wall;
	cost.cpu = (double)(cpu_ns() - cpu) * 100 / (double)wall;
	cost.sleeps = sleeps() - cost.sleeps;
	assert_true(wall >= ns / 2);
	OK(cudaSetDeviceFlags(cudaDeviceScheduleAuto));
	return cost;
}

static void test_blocking_sync_costs_no_cpu(void **state)
{
	struct cost cost = sync_cost(cudaDeviceScheduleBlockingSync, 1000 * MS);

	print_message("# blocking sync of 1 s: %.3f %% CPU\n", cost.cpu);
	assert_true(cost.cpu < 1);
	assert_true(cost.sleeps > 0);
}

static void test_other_syncs_spin(void **state)
{
	const unsigned int flags[] = { cudaDeviceScheduleAuto, cudaDeviceScheduleSpin,
				       cudaDeviceScheduleYield };

	for (int i = 0; i < 3; i++) {
		struct cost cost = sync_cost(flags[i], 300 * MS);

		print_message("# sync with flags %u: %.0f %% CPU, %ld sleeps\n", flags[i], cost.cpu,
			      cost.sleeps);
		assert_int_equal(cost.sleeps, 0);
	}
	assert_int_equal(cudaSetDeviceFlags(3), cudaErrorInvalidValue);
	cudaGetLastError();
}

static void test_blocking_event(void **state)
{
	cudaEvent_t event;
	u64 cpu;

	OK(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming));
	OK(busy(300 * MS, NULL));
	OK(cudaEventRecord(event, NULL));
	cpu = cpu_ns();
	OK(cudaEventSynchronize(event));
	assert_true(cpu_ns() - cpu < 6 * MS);
	OK(cudaEventDestroy(event));
}

static void test_launch_rate(void **state)
{
	const int nr = 20000;
	u64 cpu = cpu_ns();

	for (int i = 0; i < nr; i++)
		OK(busy(1000, NULL));
	cpu = (cpu_ns() - cpu) / nr;
	OK(cudaDeviceSynchronize());
	print_message("# launch: %llu ns CPU\n", (unsigned long long)cpu);
	/* 10,000 launches a second take a small part of one CPU, sanitizers included. */
	assert_true(cpu < 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_is_asynchronous),
		cmocka_unit_test(test_stream_adds_up),
		cmocka_unit_test(test_streams_overlap),
		cmocka_unit_test(test_event_orders_streams),
		cmocka_unit_test(test_legacy_stream_waits_for_blocking_ones),
		cmocka_unit_test(test_copy_takes_size_over_bandwidth),
		cmocka_unit_test(test_errors_are_remembered),
		cmocka_unit_test(test_device_is_per_thread),
		cmocka_unit_test(test_context_stack),
		cmocka_unit_test(test_module_launch),
		cmocka_unit_test(test_graph_has_the_length_of_its_capture),
		cmocka_unit_test(test_blocking_sync_costs_no_cpu),
		cmocka_unit_test(test_other_syncs_spin),
		cmocka_unit_test(test_blocking_event),
		cmocka_unit_test(test_launch_rate),
	};

	harness_start("4", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu streams", tests, NULL, NULL));
}
