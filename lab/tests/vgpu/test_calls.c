/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Calls of both levels that the other tests do not need. */
#include <stdlib.h>

#include "harness.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/include/vgpu_cudart.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

static void test_cooperative_launch(void **state)
{
	u64 ns = 7 * MS, start = truth_now_ns();
	void *args[] = { &ns };
	struct work work[2];
	CUfunction function;
	CUmodule module;

	OK(cudaLaunchCooperativeKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 },
				       (dim3){ 1, 1, 1 }, args, 0, NULL));
	assert_int_equal(cuModuleLoadData(&module, "image"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetFunction(&function, module, "busy"), CUDA_SUCCESS);
	assert_int_equal(cuLaunchCooperativeKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, args),
			 CUDA_SUCCESS);
	OK(cudaDeviceSynchronize());
	work_read(start, NULL, work, 2);
	work_check(&work[0], 0, 7 * MS);
	work_check(&work[1], work[0].end_ns, 7 * MS);
	assert_int_equal(cuLaunchCooperativeKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, args),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

/* A name has one function and one kernel. The driver launches both. */
static void test_kernels_of_libraries(void **state)
{
	u64 ns = 3 * MS, start = truth_now_ns();
	void *args[] = { &ns };
	CUfunction function, same, other;
	CUkernel kernel, second;
	CUlibrary library;
	CUmodule module;
	struct work work[2];

	assert_int_equal(cuLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_int_equal(cuLibraryGetKernel(&kernel, library, "busy_forward"), CUDA_SUCCESS);
	assert_int_equal(cuLibraryGetKernel(&second, library, "busy_backward"), CUDA_SUCCESS);
	assert_int_equal(cuLibraryGetKernel(&second, library, ""), CUDA_ERROR_NOT_FOUND);
	assert_ptr_not_equal(kernel, second);
	assert_int_equal(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
	assert_int_equal(cuKernelGetFunction(&function, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuModuleLoadData(&module, "image"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetFunction(&same, module, "busy_forward"), CUDA_SUCCESS);
	assert_int_equal(cuModuleGetFunction(&other, module, "busy_backward"), CUDA_SUCCESS);
	assert_ptr_equal(function, same);
	assert_ptr_not_equal(function, other);
	assert_ptr_not_equal(function, kernel);
	assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL),
			 CUDA_SUCCESS);
	OK(cudaDeviceSynchronize());
	work_read(start, NULL, work, 2);
	work_check(&work[0], 0, 3 * MS);
	work_check(&work[1], work[0].end_ns, 3 * MS);
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
	assert_int_equal(cuLibraryUnload(library), CUDA_SUCCESS);
}

static void test_event_with_flags(void **state)
{
	cudaEvent_t event;

	OK(cudaEventCreate(&event));
	OK(cudaEventRecordWithFlags(event, NULL, 0));
	OK(cudaEventSynchronize(event));
	OK(cudaEventQuery(event));
	assert_int_equal(cuEventRecordWithFlags(event, NULL, 1), CUDA_SUCCESS);
	assert_int_equal(cudaEventRecordWithFlags(event, NULL, 2), cudaErrorInvalidValue);
	OK(cudaEventDestroy(event));
	cudaGetLastError();
}

#define WIDTH  1000
#define HEIGHT 5000

/* 5 MB at 1 GB/s, and no byte of the padding. */
static void test_copy_of_rows(void **state)
{
	void *host = malloc(WIDTH * HEIGHT), *device;
	struct work work;
	size_t pitch;
	u64 start;

	OK(cudaMallocPitch(&device, &pitch, WIDTH, HEIGHT));
	assert_true(pitch > WIDTH);
	start = truth_now_ns();
	OK(cudaMemcpy2DAsync(device, pitch, host, WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice,
			     NULL));
	OK(cudaDeviceSynchronize());
	work_read(start, NULL, &work, 1);
	work_check(&work, 0, 5 * MS);
	OK(cudaMemcpy2DAsync(host, WIDTH, device, pitch, 0, HEIGHT, cudaMemcpyDeviceToHost, NULL));
	assert_int_equal(cudaMemcpy2DAsync(host, WIDTH, device, pitch, WIDTH, HEIGHT + 1,
					   cudaMemcpyDeviceToHost, NULL),
			 cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy2DAsync(host, WIDTH - 1, device, pitch, WIDTH, HEIGHT,
					   cudaMemcpyDeviceToHost, NULL),
			 cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy2DAsync(host, WIDTH, device, pitch, WIDTH, HEIGHT,
					   (enum cudaMemcpyKind)7, NULL),
			 cudaErrorInvalidMemcpyDirection);
	OK(cudaFree(device));
	free(host);
	cudaGetLastError();
}

static void test_pool(void **state)
{
	cudaMemPool_t pool, other;
	void *ptr;

	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaDeviceGetDefaultMemPool(&other, 1));
	assert_ptr_not_equal(pool, other);
	OK(cudaMallocFromPoolAsync(&ptr, 1000, pool, NULL));
	OK(cudaMemsetAsync(ptr, 0, 1000, NULL));
	OK(cudaFreeAsync(ptr, NULL));
	assert_int_equal(cudaMallocFromPoolAsync(&ptr, 1000, other, NULL), cudaErrorInvalidValue);
	assert_int_equal(cudaMallocFromPoolAsync(&ptr, 1000, NULL, NULL), cudaErrorInvalidValue);
	assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 2), cudaErrorInvalidDevice);
	cudaGetLastError();
}

static void test_registered_memory(void **state)
{
	char *memory = aligned_alloc(4096, 8192);
	size_t before, after, total;

	OK(cudaMemGetInfo(&before, &total));
	OK(cudaHostRegister(memory, 8192, 0));
	OK(cudaMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	assert_int_equal(cudaHostRegister(memory + 4096, 8192, 0),
			 cudaErrorHostMemoryAlreadyRegistered);
	/* It is neither memory of the device, nor memory that the driver allocated. */
	assert_int_equal(cudaMemset(memory, 0, 8192), cudaErrorInvalidValue);
	assert_int_equal(cudaFreeHost(memory), cudaErrorInvalidValue);
	assert_int_equal(cudaHostUnregister(memory + 1), cudaErrorHostMemoryNotRegistered);
	OK(cudaHostUnregister(memory));
	assert_int_equal(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);
	memory[0] = 1; /* still mapped */
	free(memory);
	cudaGetLastError();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cooperative_launch),
		cmocka_unit_test(test_event_with_flags),
		cmocka_unit_test(test_copy_of_rows),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_registered_memory),
		cmocka_unit_test(test_kernels_of_libraries),
	};

	harness_start("2", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu calls", tests, NULL, NULL));
}
