/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The identity of devices is not their index: device files with other numbers, a container that
 * shows some devices in its own order, and a device that is divided (MIG).
 */
#include <string.h>

#include "monitor.h"
#include "vgpu/include/vgpu_cuda.h"

#define MIG_DEVICE 1
#define NR_SLICES  3

static char mig_uuids[NR_SLICES][96];
static char gpu_uuids[3][96];

static nvmlDevice_t slice_at(unsigned int index)
{
	nvmlDevice_t slice;

	NVML_OK(nvmlDeviceGetMigDeviceHandleByIndex(device_at(MIG_DEVICE), index, &slice));
	return slice;
}

static void test_device_files(void **state)
{
	static const unsigned int minors[] = { 2, 0, 1 };
	unsigned int minor;

	for (unsigned int i = 0; i < 3; i++) {
		NVML_OK(nvmlDeviceGetMinorNumber(device_at(i), &minor));
		assert_int_equal(minor, minors[i]);
	}
}

/* The last digits of the UUID, as NVML writes them, tell which device it is. */
static void check_uuid(const char *bytes, const char *expected)
{
	const u8 *b = (const u8 *)bytes;
	char end[8];

	snprintf(end, sizeof(end), "%02x%02x", b[14], b[15]);
	CHECK(!strcmp(expected + strlen(expected) - 4, end));
}

static void runs_in_a_container(int index)
{
	struct cudaDeviceProp prop;
	char id[32];
	int count;

	setenv("VGPU_CONTAINER", "2,0", 1);
	CHECK(!cudaGetDeviceCount(&count) && count == 2);
	CHECK(!cudaDeviceGetPCIBusId(id, sizeof(id), 0) && !strcmp(id, "0000:30:00.0"));
	CHECK(!cudaGetDeviceProperties(&prop, 0));
	check_uuid(prop.uuid, gpu_uuids[2]);
	CHECK(!cudaGetDeviceProperties(&prop, 1));
	check_uuid(prop.uuid, gpu_uuids[0]);
}

static void test_container(void **state)
{
	child_join(child_start(runs_in_a_container, 0));
}

static void runs_on_a_slice(int index)
{
	CUuuid uuid;
	int count;
	void *a;

	setenv("CUDA_VISIBLE_DEVICES", mig_uuids[index], 1);
	CHECK(!cudaGetDeviceCount(&count) && count == 1);
	CHECK(!cudaMalloc(&a, 1000));
	CHECK(!cuDeviceGetUuid(&uuid, 0));
	check_uuid(uuid.bytes, gpu_uuids[MIG_DEVICE]);
	CHECK(!cuDeviceGetUuid_v2(&uuid, 0));
	check_uuid(uuid.bytes, mig_uuids[index]);
	say(ready);
	hear(go);
}

static void check_process(nvmlDevice_t device, unsigned int pid, unsigned int instance)
{
	nvmlProcessInfo_t infos[4];
	unsigned int count = 4;

	NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos));
	assert_int_equal(count, 1);
	assert_int_equal(infos[0].pid, pid);
	assert_int_equal(infos[0].gpuInstanceId, instance);
	assert_int_equal(infos[0].computeInstanceId, 0);
}

static void test_slices(void **state)
{
	nvmlUtilization_t rates;
	nvmlDevice_t slice;

	for (unsigned int i = 0; i < NR_SLICES; i++) {
		unsigned int instance, count = 0;
		pid_t pid = child_start(runs_on_a_slice, (int)i);

		hear(ready);
		NVML_OK(nvmlDeviceGetGpuInstanceId(slice_at(i), &instance));
		assert_int_equal(instance, 7 + i);
		check_process(slice_at(i), (unsigned int)pid, instance);
		check_process(device_at(MIG_DEVICE), (unsigned int)pid, instance);
		NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(slice_at((i + 1) % NR_SLICES),
								&count, NULL));
		assert_int_equal(count, 0);
		say(go);
		child_join(pid);
	}
	assert_int_equal(
		nvmlDeviceGetMigDeviceHandleByIndex(device_at(MIG_DEVICE), NR_SLICES, &slice),
		NVML_ERROR_NOT_FOUND);
	assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(device_at(0), 0, &slice),
			 NVML_ERROR_NOT_FOUND);
	assert_int_equal(nvmlDeviceGetUtilizationRates(device_at(MIG_DEVICE), &rates),
			 NVML_ERROR_NOT_SUPPORTED);
}

static int read_uuids(void **state)
{
	for (unsigned int i = 0; i < 3; i++) {
		NVML_OK(nvmlDeviceGetUUID(device_at(i), gpu_uuids[i], sizeof(gpu_uuids[i])));
		assert_memory_equal(gpu_uuids[i], "GPU-", 4);
	}
	for (unsigned int i = 0; i < NR_SLICES; i++) {
		NVML_OK(nvmlDeviceGetUUID(slice_at(i), mig_uuids[i], sizeof(mig_uuids[i])));
		assert_memory_equal(mig_uuids[i], "MIG-", 4);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_files),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_slices),
	};

	harness_start("3", "1e9");
	setenv("VGPU_MINORS", "2,0,1", 1);
	setenv("VGPU_MIG", "0,3", 1);
	if (pipe(ready) < 0 || pipe(go) < 0 || nvmlInit_v2() != NVML_SUCCESS)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu mig", tests, read_uuids, NULL));
}
