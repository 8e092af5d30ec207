/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests what a monitor sees of other processes, also of dead processes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nvml.h"

#define NVML_OK(call) assert_int_equal(call, NVML_SUCCESS)

static nvmlDevice_t device_at(unsigned int index)
{
	nvmlDevice_t device;

	NVML_OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
	return device;
}

static u64 used(unsigned int index)
{
	nvmlMemory_t memory;

	NVML_OK(nvmlDeviceGetMemoryInfo(device_at(index), &memory));
	assert_int_equal(memory.total, 1000000000);
	assert_int_equal(memory.free + memory.used, memory.total);
	return memory.used;
}

static void busy(u64 ns)
{
	void *args[] = { &ns };

	CHECK(!cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, NULL));
}

static void test_identity(void **state)
{
	nvmlDevice_t device = device_at(1);
	nvmlPciInfo_t pci;
	unsigned int count, node;
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
	NVML_OK(nvmlDeviceGetUUID(device, name, sizeof(name)));
	NVML_OK(nvmlDeviceGetUUID(device_at(0), other, sizeof(other)));
	assert_string_not_equal(name, other);
	NVML_OK(nvmlSystemGetDriverVersion(name, sizeof(name)));
	assert_int_equal(nvmlSystemGetDriverVersion(name, 2), NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);
	assert_string_equal(nvmlErrorString(NVML_ERROR_UNINITIALIZED), "Uninitialized");
}

static int ready[2], go[2];

static void say(const int fds[2])
{
	CHECK(write(fds[1], "x", 1) == 1);
}

static void hear(const int fds[2])
{
	char c;

	CHECK(read(fds[0], &c, 1) == 1);
}

/* 10 ms of work every 40 ms, for 1.2 s; less exact if the machine has no free CPU. */
static void quarter_load(int index)
{
	cudaStream_t stream;

	CHECK(!cudaSetDevice(1));
	CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (u64 start = truth_now_ns(), i = 0; i < 30; i++) {
		s64 left = (s64)(start + i * 40 * MS - truth_now_ns());

		if (left > 0)
			usleep((useconds_t)(left / 1000));
		busy(10 * MS);
	}
	say(ready);
	hear(go);
	CHECK(!cudaDeviceSynchronize()); /* queued work would end with this process */
}

#define SAMPLE_NS (500 * MS)

/* Compares with the log of the time before the call; NVML read at some moment during the call. */
static void check_percent(u32 got, pid_t pid, u64 called_ns)
{
	u64 returned = truth_now_ns();
	u64 busy_ns = work_busy_ns(pid, 1, called_ns - SAMPLE_NS, called_ns);
	u64 slack = returned - called_ns + SAMPLE_NS / 100;
	u64 got_ns = got * (SAMPLE_NS / 100);

	print_message("# busy %.1f %%: utilization %u %%\n", (double)busy_ns * 100 / SAMPLE_NS,
		      got);
	assert_true(got_ns <= busy_ns + slack && busy_ns <= got_ns + slack);
}

static unsigned long long energy_mj(void)
{
	unsigned long long mj;

	NVML_OK(nvmlDeviceGetTotalEnergyConsumption(device_at(1), &mj));
	return mj;
}

static void test_utilization(void **state)
{
	nvmlUtilization_t rates;
	nvmlProcessUtilizationSample_t samples[4];
	unsigned int count = 4;
	unsigned long long mj;
	u64 asked, start[2], end[2];
	pid_t pid;

	start[0] = truth_now_ns();
	mj = energy_mj();
	start[1] = truth_now_ns();
	pid = child_start(quarter_load, 0);
	hear(ready);
	asked = truth_now_ns();
	NVML_OK(nvmlDeviceGetUtilizationRates(device_at(1), &rates));
	check_percent(rates.gpu, pid, asked);
	asked = truth_now_ns();
	NVML_OK(nvmlDeviceGetProcessUtilization(device_at(1), samples, &count, 0));
	check_percent(samples[0].smUtil, pid, asked);
	assert_int_equal(count, 1);
	assert_int_equal(samples[0].pid, pid);
	NVML_OK(nvmlDeviceGetUtilizationRates(device_at(0), &rates));
	assert_int_equal(rates.gpu, 0);
	say(go);
	child_join(pid);
	/* 50 W when idle, and 250 W more for the 0.3 s of work. */
	end[0] = truth_now_ns();
	mj = energy_mj() - mj;
	end[1] = truth_now_ns();
	assert_in_range(mj, (end[0] - start[1]) / MS * 50 + 250 * 300 - 100,
			(end[1] - start[0]) / MS * 50 + 250 * 300 + 100);
}

static nvmlGpmSample_t sample_now(void)
{
	nvmlGpmSample_t sample;

	NVML_OK(nvmlGpmSampleAlloc(&sample));
	NVML_OK(nvmlGpmSampleGet(device_at(1), sample));
	return sample;
}

static double sm_percent(nvmlGpmSample_t from, nvmlGpmSample_t to)
{
	nvmlGpmMetricsGet_t metrics = {
		.version = NVML_GPM_METRICS_GET_VERSION,
		.numMetrics = 1,
		.sample1 = from,
		.sample2 = to,
		.metrics[0].metricId = NVML_GPM_METRIC_SM_UTIL,
	};

	NVML_OK(nvmlGpmMetricsGet(&metrics));
	NVML_OK(metrics.metrics[0].nvmlReturn);
	return metrics.metrics[0].value;
}

/* The 0.3 s of work, at any time. */
static void test_activity(void **state)
{
	u64 outer = truth_now_ns(), inner, outer_end;
	nvmlGpmSample_t from = sample_now(), to;
	double active_ns;
	pid_t pid;

	inner = truth_now_ns();
	pid = child_start(quarter_load, 0);
	hear(ready);
	say(go);
	child_join(pid);
	inner = truth_now_ns() - inner;
	to = sample_now();
	outer_end = truth_now_ns();
	active_ns = sm_percent(from, to) / 100 * (double)inner;
	print_message("# active for %.1f ms\n", active_ns / MS);
	assert_true(active_ns <= 301 * MS);
	assert_true(active_ns * (double)(outer_end - outer) / (double)inner >= 299 * MS);
	NVML_OK(nvmlGpmSampleFree(from));
	NVML_OK(nvmlGpmSampleFree(to));
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

static void sees_one_device(int index)
{
	int count, device;
	char id[32];

	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	CHECK(!cudaGetDeviceCount(&count) && count == 1);
	CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
	CHECK(!cudaSetDevice(0));
	CHECK(!cudaGetDevice(&device) && device == 0);
	CHECK(!cudaDeviceGetPCIBusId(id, sizeof(id), 0) && !strcmp(id, "0000:20:00.0"));
	say(ready);
	hear(go);
}

static void sees_none(int index)
{
	int count;

	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
}

static void test_visible_devices(void **state)
{
	nvmlProcessInfo_t info;
	unsigned int count = 1;
	pid_t pid = child_start(sees_one_device, 0);

	hear(ready);
	NVML_OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(1), &count, &info));
	assert_int_equal(count, 1);
	assert_int_equal(info.pid, pid);
	say(go);
	child_join(pid);
	child_join(child_start(sees_none, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_utilization),
		cmocka_unit_test(test_activity),
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
