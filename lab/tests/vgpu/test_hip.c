/* SPDX-License-Identifier: GPL-2.0-or-later */

/* HIP uses the same engine with other names. This tests the calls that only HIP has. */
#include "harness.h"
#include "vgpu/include/vgpu_hip.h"

#define OK(call) assert_int_equal(call, hipSuccess)

static void test_launch_and_sync(void **state)
{
	hipModule_t module;
	hipFunction_t function;
	hipStream_t stream, never;
	u64 ns = 40 * MS, eternity = 1000 * NSEC_PER_SEC, start;
	void *args[] = { &ns }, *never_args[] = { &eternity };
	struct work work[2];

	OK(hipInit(0));
	OK(hipStreamCreate(&never));
	OK(hipLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 },
			   never_args, 0, never));
	assert_int_equal(hipStreamQuery(never), hipErrorNotReady);
	OK(hipStreamDestroy(never));
	OK(hipSetDevice(1));
	OK(hipStreamCreate(&stream));
	start = truth_now_ns();
	OK(hipLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args, 0,
			   stream));
	OK(hipModuleLoadData(&module, "image"));
	OK(hipModuleGetFunction(&function, module, "busy"));
	OK(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
	OK(hipModuleUnload(module));
	OK(hipDeviceSynchronize());
	work_read(start, stream, work, 2);
	assert_true(truth_now_ns() >= work[1].end_ns);
	work_check(&work[0], 0, 40 * MS);
	work_check(&work[1], work[0].end_ns, 40 * MS);
	OK(hipStreamDestroy(stream));
	hipGetLastError();
}

static void test_memory(void **state)
{
	void *device, *host;
	size_t free, total;

	OK(hipMalloc(&device, 600000000));
	OK(hipHostMalloc(&host, 4096, 0));
	OK(hipMemGetInfo(&free, &total));
	assert_int_equal(total - free, 600000000);
	OK(hipMemcpyHtoD(device, host, 4096));
	OK(hipMemcpyDtoHAsync(host, device, 4096, NULL));
	assert_int_equal(hipMalloc(&host, 600000000), hipErrorOutOfMemory);
	assert_string_equal(hipGetErrorName(hipPeekAtLastError()), "hipErrorMemoryAllocation");
	OK(hipFree(device));
	OK(hipHostFree(host));
	OK(hipMemGetInfo(&free, &total));
	assert_int_equal(free, total);
	hipGetLastError();
}

static void test_identity(void **state)
{
	hipDevice_t device;
	size_t bytes;
	char name[64];
	struct hipDeviceProp_tR0600 prop;
	hipUUID uuid;
	int count;

	OK(hipGetDeviceCount(&count));
	assert_int_equal(count, 2);
	OK(hipDeviceGet(&device, 1));
	OK(hipDeviceGetName(name, sizeof(name), device));
	OK(hipDeviceTotalMem(&bytes, device));
	assert_int_equal(bytes, 1000000000);
	OK(hipGetDevicePropertiesR0600(&prop, device));
	assert_memory_equal(prop.uuid.bytes, "7667707500000001", sizeof(prop.uuid));
	assert_int_equal((const char *)&prop.uuid - (const char *)&prop, 256);
	OK(hipDeviceGetUuid(&uuid, 0));
	assert_memory_equal(uuid.bytes, "7667707500000000", sizeof(uuid));
	assert_int_equal(hipSetDevice(2), hipErrorInvalidDevice);
	hipGetLastError();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_and_sync),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_identity),
	};

	harness_start("2", "1e9");
	return harness_end(cmocka_run_group_tests_name("vgpu hip", tests, NULL, NULL));
}
