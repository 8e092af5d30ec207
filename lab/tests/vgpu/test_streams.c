/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests device time: order, asynchrony, events, threads, errors. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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

/*
 * A stream of the second device with work that never ends: a call that waits for it by
 * mistake hangs, and a query always returns "not ready".
 */
static cudaStream_t never_ready(void)
{
	cudaStream_t stream;

	OK(cudaSetDevice(1));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(busy(1000 * NSEC_PER_SEC, stream));
	assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
	OK(cudaSetDevice(0));
	return stream;
}

/* The sync that just returned has waited for this work. */
static void check_done(const struct work *work)
{
	assert_true(truth_now_ns() >= work->end_ns);
}

static void test_launch_is_asynchronous(void **state)
{
	cudaStream_t never = never_ready();
	u64 start = truth_now_ns();
	struct work work;

	OK(busy(5 * MS, never));
	OK(busy(200 * MS, NULL));
	OK(cudaDeviceSynchronize());
	work_read(start, NULL, &work, 1);
	check_done(&work);
	work_check(&work, 0, 200 * MS);
	OK(cudaStreamQuery(NULL));
	OK(cudaStreamDestroy(never));
	cudaGetLastError();
}

static void test_work_on_a_stream_adds_up(void **state)
{
	cudaStream_t stream;
	struct work work[10];
	u64 start = truth_now_ns();

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 10; i++)
		OK(busy(5 * MS, stream));
	OK(cudaStreamSynchronize(stream));
	work_read(start, stream, work, 10);
	check_done(&work[9]);
	for (int i = 0; i < 10; i++)
		work_check(&work[i], i ? work[i - 1].end_ns : 0, 5 * MS);
	OK(cudaStreamDestroy(stream));
	assert_int_equal(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
}

static void test_streams_overlap(void **state)
{
	cudaStream_t streams[2];
	struct work work[2];
	u64 start = truth_now_ns();

	for (int i = 0; i < 2; i++)
		OK(cudaStreamCreate(&streams[i]));
	for (int i = 0; i < 2; i++)
		OK(busy(200 * MS, streams[i]));
	for (int i = 0; i < 2; i++) {
		OK(cudaStreamSynchronize(streams[i]));
		work_read(start, streams[i], &work[i], 1);
		check_done(&work[i]);
		work_check(&work[i], 0, 200 * MS);
	}
	for (int i = 0; i < 2; i++)
		OK(cudaStreamDestroy(streams[i]));
}

/* The earliest and the latest possible time of an event. */
struct moment {
	u64 from_ns, to_ns;
};

static struct moment event_record(cudaEvent_t event, cudaStream_t stream)
{
	struct moment moment = { .from_ns = truth_now_ns() };

	OK(cudaEventRecord(event, stream));
	moment.to_ns = truth_now_ns();
	return moment;
}

/* The time of an event behind the work: the end of the work, or the time it is recorded. */
static struct moment moment_behind(struct moment recorded, const struct work *work)
{
	return (struct moment){
		recorded.from_ns > work->end_ns ? recorded.from_ns : work->end_ns,
		recorded.to_ns > work->end_ns ? recorded.to_ns : work->end_ns,
	};
}

static void test_event_orders_streams(void **state)
{
	cudaStream_t a, b;
	cudaEvent_t first, second;
	struct moment recorded[2], behind[2];
	struct work work[2];
	u64 start = truth_now_ns();
	float ms;

	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaEventCreate(&first));
	OK(cudaEventCreate(&second));
	OK(busy(50 * MS, a));
	recorded[0] = event_record(first, a);
	OK(cudaStreamWaitEvent(b, first, 0));
	OK(busy(20 * MS, b));
	recorded[1] = event_record(second, b);
	OK(cudaEventSynchronize(second));
	OK(cudaEventQuery(first));
	OK(cudaEventElapsedTime(&ms, first, second));
	work_read(start, a, &work[0], 1);
	work_read(start, b, &work[1], 1);
	/* Virtual time is exact: b starts at the end of a, unless it was queued too late. */
	for (int i = 0; i < 2; i++)
		behind[i] = moment_behind(recorded[i], &work[i]);
	work_check(&work[0], 0, 50 * MS);
	work_check(&work[1], behind[0].from_ns, 20 * MS);
	check_done(&work[1]);
	assert_true(ms >= (double)(behind[1].from_ns - behind[0].to_ns) / 1e6 - 0.001);
	assert_true(ms <= (double)(behind[1].to_ns - behind[0].from_ns) / 1e6 + 0.001);
	OK(cudaEventDestroy(first));
	OK(cudaEventDestroy(second));
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
}

static void test_event_that_is_never_ready(void **state)
{
	cudaStream_t never = never_ready();
	cudaEvent_t first, second;
	float ms;

	OK(cudaSetDevice(1));
	OK(cudaEventCreate(&first));
	OK(cudaEventCreate(&second));
	OK(cudaSetDevice(0));
	OK(cudaEventRecord(first, never));
	OK(cudaEventRecord(second, never));
	assert_int_equal(cudaEventQuery(first), cudaErrorNotReady);
	assert_int_equal(cudaEventElapsedTime(&ms, first, second), cudaErrorNotReady);
	OK(cudaEventDestroy(first));
	OK(cudaEventDestroy(second));
	OK(cudaStreamDestroy(never));
	cudaGetLastError();
}

/* Uses the device of the stream that is never ready; these streams do not wait for it. */
static void test_legacy_stream_waits_for_blocking_streams(void **state)
{
	cudaStream_t blocking, never = never_ready();
	struct work around[2], legacy;
	u64 start = truth_now_ns();

	OK(cudaSetDevice(1));
	OK(cudaStreamCreate(&blocking));
	OK(busy(40 * MS, blocking));
	OK(busy(10 * MS, NULL));
	OK(busy(10 * MS, blocking));
	OK(cudaStreamSynchronize(blocking));
	OK(cudaSetDevice(0));
	work_read(start, blocking, around, 2);
	check_done(&around[1]);
	work_read(start, NULL, &legacy, 1);
	work_check(&around[0], 0, 40 * MS);
	work_check(&legacy, around[0].end_ns, 10 * MS);
	work_check(&around[1], legacy.end_ns, 10 * MS);
	OK(cudaStreamDestroy(blocking));
	OK(cudaStreamDestroy(never));
	cudaGetLastError();
}

static void test_device_waits_for_all_streams(void **state)
{
	cudaStream_t stream;
	struct work work;
	u64 start = truth_now_ns();

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(busy(100 * MS, stream));
	OK(busy(10 * MS, NULL));
	OK(cudaDeviceSynchronize());
	work_read(start, stream, &work, 1);
	check_done(&work);
	work_read(start, NULL, &work, 1);
	work_check(&work, 0, 10 * MS);
	OK(cudaStreamDestroy(stream));
}

static void test_copy_takes_size_over_bandwidth(void **state)
{
	void *device, *host = malloc(50000000);
	cudaStream_t never = never_ready();
	struct work work[2];
	u64 start;

	OK(cudaMalloc(&device, 50000000));
	start = truth_now_ns();
	OK(cudaMemcpy(device, host, 50000000, cudaMemcpyHostToDevice));
	work_read(start, NULL, work, 1);
	work_check(&work[0], 0, 50 * MS);
	check_done(&work[0]);
	OK(cudaMemcpyAsync(host, device, 50000000, cudaMemcpyDeviceToHost, never));
	OK(cudaMemcpyAsync(host, device, 50000000, cudaMemcpyDeviceToHost, NULL));
	OK(cudaStreamSynchronize(NULL));
	work_read(start, NULL, work, 2);
	work_check(&work[1], work[0].end_ns, 50 * MS);
	check_done(&work[1]);
	OK(cudaMemset(device, 0, 1000));
	assert_int_equal(cudaMemset(device, 0, 50000001), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy(host, host, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind)9),
			 cudaErrorInvalidMemcpyDirection);
	OK(cudaFree(device));
	OK(cudaStreamDestroy(never));
	free(host);
	cudaGetLastError();
}

static void test_errors_are_kept_until_read(void **state)
{
	int count;

	OK(cudaGetLastError());
	assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
	assert_int_equal(cudaErrorInvalidDevice, 101);
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 4);
	/* A successful call does not clear the error; cudaGetLastError() does. */
	assert_int_equal(cudaPeekAtLastError(), 101);
	assert_int_equal(cudaGetLastError(), 101);
	OK(cudaGetLastError());
	assert_int_equal(cudaMalloc(NULL, 10), 1);
	assert_int_equal(cudaGetLastError(), 1);
	assert_int_equal(
		cudaLaunchKernel(NULL, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, NULL), 98);
	assert_int_equal(cudaLaunchKernel((const void *)test_errors_are_kept_until_read,
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

	/* A new thread starts on the first device, without an error. */
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
	/* Its streams are destroyed with it, and the old context is current again. */
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
	struct work work;

	assert_int_equal(cuModuleLoadData(&module, "image"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetFunction(&function, module, "busy"), CUDA_SUCCESS);
	start = truth_now_ns();
	assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	work_read(start, NULL, &work, 1);
	work_check(&work, 0, 30 * MS);
	check_done(&work);
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_is_asynchronous),
		cmocka_unit_test(test_work_on_a_stream_adds_up),
		cmocka_unit_test(test_streams_overlap),
		cmocka_unit_test(test_event_orders_streams),
		cmocka_unit_test(test_event_that_is_never_ready),
		cmocka_unit_test(test_legacy_stream_waits_for_blocking_streams),
		cmocka_unit_test(test_device_waits_for_all_streams),
		cmocka_unit_test(test_copy_takes_size_over_bandwidth),
		cmocka_unit_test(test_errors_are_kept_until_read),
		cmocka_unit_test(test_device_is_per_thread),
		cmocka_unit_test(test_context_stack),
		cmocka_unit_test(test_module_launch),
	};

	harness_start("4", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu streams", tests, NULL, NULL));
}
