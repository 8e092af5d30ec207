/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests what a monitor sees of other processes, also of dead processes. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "monitor.h"
#include "vgpu/include/vgpu_cuda.h"

static u64 used(unsigned int index)
{
	nvmlMemory_t memory;

	NVML_OK(nvmlDeviceGetMemoryInfo(device_at(index), &memory));
	assert_int_equal(memory.total, 1000000000);
	assert_int_equal(memory.free + memory.used, memory.total);
	return memory.used;
}

static void test_identity(void **state)
{
	nvmlDevice_t device = device_at(1);
	nvmlPciInfo_t pci;
	unsigned int count, node, minor;
	char name[96], other[96];

	NVML_OK(nvmlDeviceGetCount_v2(&count));
	assert_int_equal(count, 2);
	NVML_OK(nvmlDeviceGetName(device, name, sizeof(name)));
	assert_true(strlen(name) > 0);
	NVML_OK(nvmlDeviceGetPciInfo_v3(device, &pci));
	assert_string_equal(pci.busId, "00000000:20:00.0");
	assert_int_equal(pci.bus, 0x20);
	NVML_OK(nvmlDeviceGetNumaNodeId(device, &node));
	assert_int_equal(node, 1);
	NVML_OK(nvmlDeviceGetNumaNodeId(device_at(0), &node));
	assert_int_equal(node, 0);
	NVML_OK(nvmlDeviceGetMinorNumber(device, &minor));
	assert_int_equal(minor, 1);
	NVML_OK(nvmlDeviceGetUUID(device, name, sizeof(name)));
	NVML_OK(nvmlDeviceGetUUID(device_at(0), other, sizeof(other)));
	assert_string_not_equal(name, other);
	NVML_OK(nvmlSystemGetDriverVersion(name, sizeof(name)));
	assert_int_equal(nvmlSystemGetDriverVersion(name, 2), NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);
	assert_string_equal(nvmlErrorString(NVML_ERROR_UNINITIALIZED), "Uninitialized");
}

static void hold_memory(int bytes)
{
	void *a;

	CHECK(!cudaMalloc(&a, (size_t)bytes));
	busy(1000 * 1000 * MS); /* queued work also ends with the process */
	say(ready);
	pause();
}

static void take_all(int index)
{
	void *a;

	CHECK(!cudaMalloc(&a, 1000000000));
	CHECK(!cudaFree(a));
}

static void kill_and_wait(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void test_killed_process_returns_all_memory(void **state)
{
	nvmlProcessInfo_t infos[4];
	nvmlUtilization_t rates;
	unsigned int count = 4;
	pid_t a = child_start(hold_memory, 300000000), b = child_start(hold_memory, 500000000);

	hear(ready);
	hear(ready);
	assert_int_equal(used(0), 800000000);
	NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 2);
	assert_true((infos[0].pid == (unsigned int)a && infos[0].usedGpuMemory == 300000000) ||
		    (infos[1].pid == (unsigned int)a && infos[1].usedGpuMemory == 300000000));
	count = 1;
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 2);
	kill_and_wait(a);
	assert_int_equal(used(0), 500000000);
	kill_and_wait(b);
	child_join(child_start(take_all, 0));
	assert_int_equal(used(0), 0);
	count = 4;
	NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 0);
	sleep_ms(600);
	NVML_OK(nvmlDeviceGetUtilizationRates(device_at(0), &rates));
	assert_int_equal(rates.gpu, 0);
}

static void kill_loop(int index)
{
	for (;;) {
		void *a;

		CHECK(!cudaMalloc(&a, 100000));
		busy(1000);
		CHECK(!cudaFree(a));
	}
}

/* A process that is killed, even while it holds the shared lock, blocks no other process. */
static void test_killed_process_blocks_no_other(void **state)
{
	for (int i = 0; i < 15; i++) {
		pid_t pid = child_start(kill_loop, 0);

		usleep((useconds_t)(20000 + i * 777));
		kill_and_wait(pid);
		assert_int_equal(used(0), 0);
	}
	child_join(child_start(take_all, 0));
}

/* The UUID of a device as NVML prints it, from the bytes of the other interfaces. */
static void uuid_text(const char *bytes, char text[64])
{
	const u8 *b = (const u8 *)bytes;

	sprintf(text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		b[13], b[14], b[15]);
}

static void check_uuid(int device, const char *expected)
{
	/* Where programs and probes look for it. */
	char prop[2][2048], text[64];
	CUuuid uuid;

	CHECK(!cudaGetDeviceProperties((struct cudaDeviceProp *)prop[0], device));
	CHECK(!cudaGetDeviceProperties_v2((struct cudaDeviceProp *)prop[1], device));
	for (int i = 0; i < 2; i++) {
		uuid_text(prop[i] + 256, text);
		CHECK(!strcmp(text, expected));
	}
	CHECK(!cuDeviceGetUuid(&uuid, device));
	uuid_text(uuid.bytes, text);
	CHECK(!strcmp(text, expected));
	CHECK(!cuDeviceGetUuid_v2(&uuid, device));
	uuid_text(uuid.bytes, text);
	CHECK(!strcmp(text, expected));
}

static char uuids[2][96];

static void sees_both_devices(int index)
{
	struct cudaDeviceProp prop;
	int count;

	CHECK(!cudaGetDeviceCount(&count) && count == 2);
	for (int i = 0; i < 2; i++)
		check_uuid(i, uuids[i]);
	CHECK(cudaGetDeviceProperties(&prop, 2) == cudaErrorInvalidDevice);
}

static void sees_one_device(int index)
{
	static const char *const lists[] = { "1", uuids[1] };
	int count, device;
	char id[32];

	setenv("CUDA_VISIBLE_DEVICES", lists[index], 1);
	CHECK(!cudaGetDeviceCount(&count) && count == 1);
	CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
	CHECK(!cudaSetDevice(0));
	CHECK(!cudaGetDevice(&device) && device == 0);
	CHECK(!cudaDeviceGetPCIBusId(id, sizeof(id), 0) && !strcmp(id, "0000:20:00.0"));
	check_uuid(0, uuids[1]);
	say(ready);
	hear(go);
}

/* The beginning of a UUID is enough if it names one device. */
static void sees_by_prefix(int index)
{
	char prefix[16];
	int count;

	snprintf(prefix, sizeof(prefix), "%.8s", uuids[0]);
	setenv("CUDA_VISIBLE_DEVICES", prefix, 1);
	if (index == 1)
		other_devices("1");
	CHECK(cudaGetDeviceCount(&count) == (index == 1 ? cudaSuccess : cudaErrorNoDevice));
	CHECK(index != 1 || count == 1);
}

static void sees_none(int index)
{
	int count;

	static const char *const lists[] = { "", "GPU-", "GPU-deadbeef", "1x", "9" };

	setenv("CUDA_VISIBLE_DEVICES", lists[index], 1);
	CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
}

static void test_visible_devices(void **state)
{
	for (int i = 0; i < 2; i++)
		NVML_OK(nvmlDeviceGetUUID(device_at((unsigned int)i), uuids[i], sizeof(uuids[i])));
	child_join(child_start(sees_both_devices, 0));
	for (int i = 0; i < 2; i++) {
		nvmlProcessInfo_t info;
		unsigned int count = 1;
		pid_t pid = child_start(sees_one_device, i);

		hear(ready);
		NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(1), &count, &info));
		assert_int_equal(count, 1);
		assert_int_equal(info.pid, pid);
		say(go);
		child_join(pid);
	}
	for (int i = 0; i < 5; i++)
		child_join(child_start(sees_none, i));
	for (int i = 0; i < 2; i++)
		child_join(child_start(sees_by_prefix, i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_killed_process_returns_all_memory),
		cmocka_unit_test(test_killed_process_blocks_no_other),
		cmocka_unit_test(test_visible_devices),
	};
	nvmlDevice_t device;

	harness_start("2", "1e9");
	if (pipe(ready) < 0 || pipe(go) < 0 ||
	    nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_ERROR_UNINITIALIZED ||
	    nvmlInit_v2() != NVML_SUCCESS)
		return 1;
	return harness_end(cmocka_run_group_tests_name("vgpu nvml", tests, NULL, NULL));
}
