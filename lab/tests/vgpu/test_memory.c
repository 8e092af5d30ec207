/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the table of allocations: memory that each interface takes and returns, and the limit. */
#include <string.h>

#include "harness.h"
#include "vgpu/include/vgpu_cuda.h"
#include "vgpu/include/vgpu_cudart.h"

#define CAPACITY 1000000000ULL
#define MIB	 (1ULL << 20)

#define CUDA_OK(call) assert_int_equal(call, 0)

static u64 used(void)
{
	size_t free, total;

	CUDA_OK(cudaMemGetInfo(&free, &total));
	assert_int_equal(total, CAPACITY);
	return total - free;
}

static void test_every_interface_counts_memory(void **state)
{
	void *plain, *async, *pitched, *managed, *host, *pinned;
	size_t pitch;

	CUDA_OK(cudaMalloc(&plain, 1000001));
	assert_int_equal(used(), 1000001);
	CUDA_OK(cudaMallocAsync(&async, 5000, NULL));
	assert_int_equal(used(), 1005001);
	CUDA_OK(cudaMallocPitch(&pitched, &pitch, 1000, 100));
	assert_int_equal(pitch, 1024);
	assert_int_equal(used(), 1107401);
	CUDA_OK(cudaMallocManaged(&managed, 4096, 1));
	assert_int_equal(used(), 1111497);
	CUDA_OK(cudaMallocHost(&host, 1 << 20));
	CUDA_OK(cudaHostAlloc(&pinned, 1 << 20, 0));
	assert_int_equal(used(), 1111497);
	/* The host may access host memory and managed memory. */
	memset(managed, 1, 4096);
	memset(host, 1, 1 << 20);

	CUDA_OK(cudaFree(managed));
	CUDA_OK(cudaFree(pitched));
	CUDA_OK(cudaFreeAsync(async, NULL));
	CUDA_OK(cudaFree(plain));
	CUDA_OK(cudaFreeHost(host));
	CUDA_OK(cudaFreeHost(pinned));
	assert_int_equal(used(), 0);
}

static void test_invalid_frees_change_nothing(void **state)
{
	void *device, *host;
	int local;

	CUDA_OK(cudaMalloc(&device, 4096));
	CUDA_OK(cudaMallocHost(&host, 4096));
	assert_int_equal(cudaFree((char *)device + 8), cudaErrorInvalidValue);
	assert_int_equal(cudaFree(&local), cudaErrorInvalidValue);
	assert_int_equal(cudaFree(host), cudaErrorInvalidValue);
	assert_int_equal(cudaFreeHost(device), cudaErrorInvalidValue);
	assert_int_equal(used(), 4096);
	CUDA_OK(cudaFree(NULL));
	CUDA_OK(cudaFree(device));
	assert_int_equal(cudaFree(device), cudaErrorInvalidValue);
	CUDA_OK(cudaFreeHost(host));
	assert_int_equal(used(), 0);
	cudaGetLastError();
}

static void test_out_of_memory_and_recovery(void **state)
{
	void *a, *b = NULL;

	CUDA_OK(cudaMalloc(&a, 600000000));
	assert_int_equal(cudaMalloc(&b, 400000001), cudaErrorMemoryAllocation);
	assert_int_equal(cudaErrorMemoryAllocation, 2);
	assert_null(b);
	assert_int_equal(cudaMallocAsync(&b, 400000001, NULL), 2);
	assert_int_equal(cudaMallocManaged(&b, 400000001, 1), 2);
	assert_int_equal(cudaMalloc(&b, ~0ULL), 2);
	assert_int_equal(used(), 600000000);
	/* The error is not sticky: an allocation that fits still succeeds. */
	CUDA_OK(cudaMalloc(&b, 400000000));
	assert_int_equal(used(), CAPACITY);
	CUDA_OK(cudaFree(a));
	CUDA_OK(cudaFree(b));
	assert_int_equal(used(), 0);
	cudaGetLastError();
}

static void test_devices_have_their_own_memory(void **state)
{
	void *a;

	CUDA_OK(cudaSetDevice(1));
	CUDA_OK(cudaMalloc(&a, 900000000));
	assert_int_equal(used(), 900000000);
	CUDA_OK(cudaSetDevice(0));
	assert_int_equal(used(), 0);
	/* A pointer belongs to its device, also when another device is current. */
	CUDA_OK(cudaFree(a));
	CUDA_OK(cudaSetDevice(1));
	assert_int_equal(used(), 0);
	CUDA_OK(cudaSetDevice(0));
}

static void test_reset_returns_all_memory(void **state)
{
	void *a, *b;

	CUDA_OK(cudaMalloc(&a, 1000));
	CUDA_OK(cudaMallocManaged(&b, 1000, 1));
	CUDA_OK(cudaDeviceReset());
	assert_int_equal(used(), 0);
	assert_int_equal(cudaFree(a), cudaErrorInvalidValue);
	cudaGetLastError();
}

/* A primary context stays retained after a reset. */
static void test_reset_does_not_release(void **state)
{
	CUcontext ctx;
	unsigned int flags;
	int active;
	void *a;

	CUDA_OK(cudaSetDevice(1));
	CUDA_OK(cuDevicePrimaryCtxRetain(&ctx, 1));
	CUDA_OK(cudaDeviceReset());
	CUDA_OK(cudaMalloc(&a, 1000));
	CUDA_OK(cuDevicePrimaryCtxRelease_v2(1));
	CUDA_OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 1);
	assert_int_equal(used(), 1000);
	CUDA_OK(cudaFree(a));
	CUDA_OK(cudaSetDevice(0));
}

static void test_failed_destroy_changes_nothing(void **state)
{
	CUcontext a, b, current;

	CUDA_OK(cuCtxCreate_v2(&a, 0, 0));
	CUDA_OK(cuCtxCreate_v2(&b, 0, 0));
	CUDA_OK(cuCtxPushCurrent_v2(b));
	CUDA_OK(cuCtxDestroy_v2(b));
	/* The context is destroyed, but still the current one. */
	assert_int_equal(cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
	CUDA_OK(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, b);
	CUDA_OK(cuCtxPopCurrent_v2(&current));
	CUDA_OK(cuCtxDestroy_v2(a));
}

static const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
static const CUmemAccessDesc access_desc = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static void test_vmm(void **state)
{
	CUmemGenericAllocationHandle a, b;
	CUdeviceptr va;
	size_t granularity;
	char host[16];

	CUDA_OK(cuMemGetAllocationGranularity(&granularity, &prop, 0));
	assert_int_equal(granularity, 2 * MIB);
	CUDA_OK(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
	assert_int_equal(va % granularity, 0);
	/* Addresses use no memory; memory counts from cuMemCreate. */
	assert_int_equal(used(), 0);
	CUDA_OK(cuMemCreate(&a, 2 * MIB, &prop, 0));
	CUDA_OK(cuMemCreate(&b, 4 * MIB, &prop, 0));
	assert_int_equal(used(), 6 * MIB);
	CUDA_OK(cuMemMap(va, 2 * MIB, 0, a, 0));
	CUDA_OK(cuMemMap(va + 2 * MIB, 4 * MIB, 0, b, 0));
	CUDA_OK(cuMemSetAccess(va, 6 * MIB, &access_desc, 1));
	assert_int_equal(used(), 6 * MIB);
	/* A copy may cross from one mapping into the next, but not beyond it. */
	CUDA_OK(cuMemcpyHtoD_v2(va + 2 * MIB - 8, host, sizeof(host)));
	assert_int_equal(cuMemcpyHtoD_v2(va + 6 * MIB - 8, host, sizeof(host)), 1);

	CUDA_OK(cuMemRelease(a));
	assert_int_equal(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(used(), 6 * MIB);
	assert_int_equal(cuMemAddressFree(va, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
	CUDA_OK(cuMemUnmap(va, 2 * MIB));
	assert_int_equal(used(), 4 * MIB);
	CUDA_OK(cuMemUnmap(va + 2 * MIB, 4 * MIB));
	assert_int_equal(used(), 4 * MIB);
	CUDA_OK(cuMemRelease(b));
	assert_int_equal(used(), 0);
	CUDA_OK(cuMemAddressFree(va, 8 * MIB));
}

static void test_vmm_errors(void **state)
{
	CUmemGenericAllocationHandle a;
	CUdeviceptr va;

	assert_int_equal(cuMemCreate(&a, 1000, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemCreate(&a, 1024 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CUDA_OK(cuMemAddressReserve(&va, 4 * MIB, 0, 0, 0));
	CUDA_OK(cuMemCreate(&a, 2 * MIB, &prop, 0));
	assert_int_equal(cuMemMap(va + 4 * MIB, 2 * MIB, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(va, 2 * MIB, 0, a + 8, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemSetAccess(va, 2 * MIB, &access_desc, 1), CUDA_ERROR_INVALID_VALUE);
	CUDA_OK(cuMemMap(va, 2 * MIB, 0, a, 0));
	assert_int_equal(cuMemMap(va, 2 * MIB, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cudaFree((void *)va), CUDA_ERROR_INVALID_VALUE);
	CUDA_OK(cuMemUnmap(va, 2 * MIB));
	assert_int_equal(cuMemUnmap(va, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	CUDA_OK(cuMemRelease(a));
	CUDA_OK(cuMemAddressFree(va, 4 * MIB));
	assert_int_equal(used(), 0);
	cudaGetLastError();
}

/* A child cannot use a device that was opened before the fork; the parent keeps its device. */
static void forked_after_init(int index)
{
	void *a;

	CHECK(cudaMalloc(&a, 100) == cudaErrorInitializationError);
}

static void test_fork_after_init(void **state)
{
	void *a;

	CUDA_OK(cudaMalloc(&a, 100));
	child_join(child_start(forked_after_init, 0));
	assert_int_equal(used(), 100);
	CUDA_OK(cudaFree(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_interface_counts_memory),
		cmocka_unit_test(test_invalid_frees_change_nothing),
		cmocka_unit_test(test_out_of_memory_and_recovery),
		cmocka_unit_test(test_devices_have_their_own_memory),
		cmocka_unit_test(test_reset_returns_all_memory),
		cmocka_unit_test(test_reset_does_not_release),
		cmocka_unit_test(test_failed_destroy_changes_nothing),
		cmocka_unit_test(test_vmm),
		cmocka_unit_test(test_vmm_errors),
		cmocka_unit_test(test_fork_after_init),
	};

	harness_start("2", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu memory", tests, NULL, NULL));
}
