/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The default streams, and the two ways to the driver: by link and by cuGetProcAddress. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "base/macros.h"
#include "harness.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/include/vgpu_cudart.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

typedef __typeof__(cudaLaunchKernel) launch_fn;

static cudaError_t busy(launch_fn *launch, u64 ns, cudaStream_t stream)
{
	void *args[] = { &ns };

	return launch((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args, 0,
		      stream);
}

/* The streams of the last launches in the log, newest last. */
static void streams_read(u64 since_ns, u64 *ret, u32 nr)
{
	struct truth_file file;
	u32 found = 0;

	harness_log(getpid(), &file);
	for (u64 i = 0; i < file.nr_records; i++)
		if (file.records[i].kind == TRUTH_LAUNCH && file.records[i].start_ns >= since_ns) {
			assert_true(found < nr);
			ret[found++] = file.records[i].b;
		}
	truth_file_done(&file);
	assert_int_equal(found, nr);
}

static void test_handles(void **state)
{
	u64 start = truth_now_ns(), streams[6];

	OK(busy(cudaLaunchKernel, 1000, NULL));
	OK(busy(cudaLaunchKernel, 1000, cudaStreamLegacy));
	OK(busy(cudaLaunchKernel_ptsz, 1000, cudaStreamLegacy));
	OK(busy(cudaLaunchKernel, 1000, cudaStreamPerThread));
	OK(busy(cudaLaunchKernel_ptsz, 1000, NULL));
	OK(busy(cudaLaunchKernel_ptsz, 1000, cudaStreamPerThread));
	OK(cudaDeviceSynchronize());
	streams_read(start, streams, 6);
	for (int i = 0; i < 3; i++)
		assert_int_equal(streams[i], 0);
	assert_int_not_equal(streams[3], 0);
	assert_int_equal(streams[4], streams[3]);
	assert_int_equal(streams[5], streams[3]);
	assert_int_equal(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
	/* The program cannot pass the stream by its address. */
	assert_int_equal(cudaStreamQuery((cudaStream_t)streams[3]), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
}

static void *thread_main(void *arg)
{
	return busy(cudaLaunchKernel_ptsz, 1000 * NSEC_PER_SEC, NULL) ? "launch failed" : NULL;
}

/* Work of another thread that never ends does not hold up the default stream of this one. */
static void test_each_thread_has_its_own(void **state)
{
	u64 start = truth_now_ns(), streams[2];
	pthread_t thread;
	void *result;

	OK(cudaSetDevice(1));
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, &result);
	assert_null(result);
	OK(cudaSetDevice(0));
	OK(busy(cudaLaunchKernel_ptsz, MS, NULL));
	OK(cudaStreamSynchronize_ptsz(NULL));
	streams_read(start, streams, 2);
	assert_int_not_equal(streams[0], streams[1]);
	/* The default stream of the context waits for both. */
	assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady);
	cudaGetLastError();
}

static void test_copies_use_the_stream_of_the_thread(void **state)
{
	u64 start, streams[4];
	char host[64];
	void *device;

	OK(cudaSetDevice(1));
	OK(cudaMallocAsync_ptsz(&device, sizeof(host), NULL));
	start = truth_now_ns();
	OK(cudaMemcpy_ptds(device, host, sizeof(host), cudaMemcpyHostToDevice));
	OK(cudaMemcpyAsync_ptsz(host, device, sizeof(host), cudaMemcpyDeviceToHost, NULL));
	OK(cudaMemset_ptds(device, 0, sizeof(host)));
	OK(cudaMemsetAsync_ptsz(device, 0, sizeof(host), NULL));
	OK(cudaStreamSynchronize_ptsz(NULL));
	streams_read(start, streams, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_not_equal(streams[i], 0);
		assert_int_equal(streams[i], streams[0]);
	}
	OK(cudaFreeAsync_ptsz(device, NULL));
	OK(cudaSetDevice(0));
}

/* In the driver, not in this program. */
static void *driver_symbol(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found;

	assert_non_null(driver);
	found = dlsym(driver, name);
	assert_non_null(found);
	dlclose(driver);
	return found;
}

static void test_entry_points(void **state)
{
	static const struct {
		const char *symbol;
		u64 flags;
		const char *found;
	} cases[] = {
		{ "cuLaunchKernel", 0, "cuLaunchKernel" },
		{ "cuLaunchKernel", 1, "cuLaunchKernel" },
		{ "cuLaunchKernel", 2, "cuLaunchKernel_ptsz" },
		{ "cuMemcpyHtoD", 2, "cuMemcpyHtoD_v2_ptds" },
		{ "cuMemcpyHtoD", 0, "cuMemcpyHtoD_v2" },
		{ "cuMemAlloc", 2, "cuMemAlloc_v2" },
		{ "cuGetProcAddress", 0, "cuGetProcAddress_v2" },
		{ "cuNoSuchCall", 0, NULL },
		{ "cuMemAlloc_v2", 0, NULL },
		{ "malloc", 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		void *expected = cases[i].found ? driver_symbol(cases[i].found) : NULL;
		enum cudaDriverEntryPointQueryResult status;
		CUdriverProcAddressQueryResult found;
		void *address;

		assert_int_equal(cuGetProcAddress_v2(cases[i].symbol, &address, 12000,
						     cases[i].flags, &found),
				 CUDA_SUCCESS);
		assert_ptr_equal(address, expected);
		assert_int_equal(found, expected ? CU_GET_PROC_ADDRESS_SUCCESS
						 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
		OK(cudaGetDriverEntryPoint(cases[i].symbol, &address, cases[i].flags, &status));
		assert_ptr_equal(address, expected);
		assert_int_equal(status, expected ? cudaDriverEntryPointSuccess
						  : cudaDriverEntryPointSymbolNotFound);
	}
}

static void test_entry_point_versions(void **state)
{
	void *address;

	assert_int_equal(cuGetProcAddress("cuGetProcAddress", &address, 11030, 0), CUDA_SUCCESS);
	assert_ptr_equal(address, driver_symbol("cuGetProcAddress"));
	assert_int_equal(cuGetProcAddress("cuNoSuchCall", &address, 11030, 0),
			 CUDA_ERROR_NOT_FOUND);
	/* Newer than the driver. */
	assert_int_equal(cuGetProcAddress("cuInit", &address, 99000, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cudaGetDriverEntryPoint_ptsz("cuGraphLaunch", &address, 0, NULL));
	assert_ptr_equal(address, driver_symbol("cuGraphLaunch_ptsz"));
	OK(cudaGetDriverEntryPointByVersion("cuGraphLaunch", &address, 12000, 0, NULL));
	assert_ptr_equal(address, driver_symbol("cuGraphLaunch"));
}

/*
 * These come before the driver's own functions when the runtime is linked, so they count
 * its calls: each form of a launch enters the same form of the driver's launch, once.
 */
static u32 nr_plain, nr_per_thread;

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared, CUstream stream, void **params,
			void **extra)
{
	__typeof__(cuLaunchKernel) *next = dlsym(RTLD_NEXT, "cuLaunchKernel");

	nr_plain++;
	return next(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
		    params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			     unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			     unsigned int block_z, unsigned int shared, CUstream stream,
			     void **params, void **extra)
{
	__typeof__(cuLaunchKernel) *next = dlsym(RTLD_NEXT, "cuLaunchKernel_ptsz");

	nr_per_thread++;
	return next(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
		    params, extra);
}

static void test_runtime_enters_the_driver(void **state)
{
	nr_plain = nr_per_thread = 0;
	OK(busy(cudaLaunchKernel, 1000, NULL));
	assert_int_equal(nr_plain, 1);
	assert_int_equal(nr_per_thread, 0);
	OK(busy(cudaLaunchKernel_ptsz, 1000, NULL));
	assert_int_equal(nr_plain, 1);
	assert_int_equal(nr_per_thread, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_each_thread_has_its_own),
		cmocka_unit_test(test_copies_use_the_stream_of_the_thread),
		cmocka_unit_test(test_entry_points),
		cmocka_unit_test(test_entry_point_versions),
		cmocka_unit_test(test_runtime_enters_the_driver),
	};

	harness_start("2", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu default stream", tests, NULL, NULL));
}
