/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Compares the load that child processes put on the virtual GPU with the NVML samples. On a
 * busy machine the children launch late, so the log of the virtual GPU is the truth.
 */
#include "collect/tree.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"

#define NR_DEVICES   4
#define MEMORY_BYTES 1000000000
#define PERIOD_MS    40
#define NR_LAUNCHES  25
/* NVML does not tell the render node of a GPU. */
#define IDENTITY     (GPU_IDENTITY & ~(u32)GPU_HAS_RENDER_FILE)
#define WINDOW_NS    (NSEC_PER_SEC / 6) /* the sample period of the virtual GPU */

/*
 * Milliseconds of work per period for each GPU, and allocated bytes, which are not round
 * numbers.
 */
static const u64 duty_ms[NR_DEVICES] = { 10, 20, 30, 0 };
static const u64 held_bytes[NR_DEVICES] = { 1000003, 123456789, 7, 500000001 };

/* Shared memory between this process and its children. */
static struct shared {
	atomic_int stop;
	atomic_int nr_loaded;
} *shared;

static struct gpu_samples samples;
static bool has_gpm; /* the driver has performance monitoring */

static void busy(u64 ns)
{
	void *args[] = { &ns };

	CHECK(!cudaLaunchKernel((const void *)vgpu_busy, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args,
				0, NULL));
}

/* Two windows of load, then no launches until the sample is taken. */
static void load(int index)
{
	u64 start;
	void *a;

	CHECK(!cudaSetDevice(index));
	CHECK(!cudaMalloc(&a, held_bytes[index]));
	start = truth_now_ns();
	for (u64 i = 0; i < NR_LAUNCHES; i++) {
		s64 left = (s64)(start + i * PERIOD_MS * MS - truth_now_ns());

		if (left > 0)
			usleep((useconds_t)(left / 1000));
		if (duty_ms[index])
			busy(duty_ms[index] * MS);
	}
	shared->nr_loaded++;
	while (!shared->stop)
		sleep_ms(5);
}

/* Whole percent of the last period that was complete at this time, by the log. */
static u32 logged_percent(pid_t pid, u32 device, u64 at_ns)
{
	u64 start = (at_ns / WINDOW_NS - 1) * WINDOW_NS;
	u64 busy_ns = work_busy_ns(pid, device, start, start + WINDOW_NS);

	return (u32)((busy_ns * 100 + WINDOW_NS / 2) / WINDOW_NS);
}

static void check_identity(u32 i)
{
	/* From NVML; sysfs has -1 for the third GPU and another node for the fourth. */
	static const s32 nodes[NR_DEVICES] = { 0, 1, 1, 2 };
	const struct gpu_sample *device = &samples.devices[i];
	char address[32], uuid[64];

	snprintf(address, sizeof(address), "0000:%02x:00.0", 0x10 + 0x10 * i);
	snprintf(uuid, sizeof(uuid), "GPU-76677075-0000-0000-0000-%012x", i);
	assert_int_equal(device->index, i);
	assert_int_equal(device->valid & GPU_IDENTITY, IDENTITY);
	assert_int_equal(device->nvidia_file, i);
	assert_string_equal(device->pci_address, address);
	assert_string_equal(device->uuid, uuid);
	assert_string_equal(device->name, "NVIDIA vGPU Lab");
	assert_int_equal(device->numa_node, nodes[i]);
}

/* A period may end while we read: then either is right. */
static void check_load(u32 i, pid_t pid, u64 asked_ns, u64 took_ns)
{
	const struct gpu_sample *device = &samples.devices[i];
	const struct gpu_process_sample *process = &samples.processes[i];
	u32 first = logged_percent(pid, i, asked_ns);
	u32 last = logged_percent(pid, i, asked_ns + took_ns);

	print_message("# device %u: load %u %%, utilisation %u %%, of the process %u %%\n", i,
		      first, device->utilisation, process->utilisation);
	assert_int_equal(device->valid, IDENTITY | GPU_HAS_UTILISATION | GPU_HAS_MEMORY_USED |
						GPU_HAS_MEMORY_TOTAL | GPU_HAS_ENERGY |
						(has_gpm ? GPU_HAS_ACTIVE : 0) | GPU_HAS_BUSY_TIME);
	assert_true(device->utilisation == first || device->utilisation == last);
	assert_int_equal(device->memory_used_bytes, held_bytes[i]);
	assert_int_equal(device->memory_total_bytes, MEMORY_BYTES);
	assert_int_equal(process->pid, pid);
	assert_int_equal(process->gpu, i);
	assert_int_equal(process->memory_used_bytes, held_bytes[i]);
	assert_true(process->valid & GPU_HAS_MEMORY_USED);
	/* NVML has no sample of a process that did nothing. */
	if (process->valid & GPU_HAS_UTILISATION)
		assert_true(process->utilisation == first || process->utilisation == last);
	else
		assert_true(!first || !last);
}

/*
 * Utilization is whole percent of a period. Monitoring is exact, but on a busy machine its
 * samples are taken some time before they are stamped.
 */
static void check_busy_time(u32 i, pid_t pid)
{
	const struct gpu_busy_time *busy = &samples.devices[i].busy;
	u64 passed_ns = busy->at_ns - busy->since_ns;
	u64 logged_ns = work_busy_ns(pid, i, busy->since_ns, busy->at_ns);
	u64 error_ns = has_gpm ? passed_ns / 20 : passed_ns / 100 + MS;

	print_message("# device %u: busy %llu ms of %llu ms, by the log %llu ms\n", i,
		      busy->busy_ns / MS, passed_ns / MS, logged_ns / MS);
	assert_int_equal(busy->counter, has_gpm ? GPU_COUNTER_GPM : GPU_COUNTER_UTILIZATION);
	assert_true(passed_ns >= WINDOW_NS);
	assert_in_range(busy->busy_ns + error_ns, logged_ns, logged_ns + 2 * error_ns);
}

static void test_four_devices(void **state)
{
	struct gpu *gpu = NULL;
	pid_t pids[NR_DEVICES];
	u64 mj, before, took, asked, after;

	tree_write(tree_path("sys/bus/pci/devices/0000:30:00.0/numa_node"), "-1\n");
	tree_write(tree_path("sys/bus/pci/devices/0000:40:00.0/numa_node"), "2\n");
	tree_config.nvml_library = gpu_config_system.nvml_library;
	for (int i = 0; i < NR_DEVICES; i++)
		pids[i] = child_start(load, i);
	assert_int_equal(gpu_new(&tree_config, &gpu), 0);
	/* Utilization has its first sample at the end of a period. */
	do {
		sleep_ms(5);
		assert_int_equal(gpu_read(gpu, NULL, 0, truth_now_ns(), &samples), 0);
	} while (samples.nr_devices < NR_DEVICES ||
		 !(samples.devices[0].valid & GPU_HAS_BUSY_TIME));
	while (shared->nr_loaded < NR_DEVICES)
		sleep_ms(5);
	before = truth_now_ns();
	assert_int_equal(gpu_read(gpu, NULL, 0, before, &samples), 0);
	took = truth_now_ns() - before;
	assert_int_equal(samples.nr_devices, NR_DEVICES);
	assert_int_equal(samples.nr_processes, NR_DEVICES);
	assert_int_equal(samples.nr_dropped + samples.nr_stalled, 0);
	for (u32 i = 0; i < NR_DEVICES; i++) {
		check_identity(i);
		check_load(i, pids[i], before, took);
		check_busy_time(i, pids[i]);
	}
	shared->stop = 1;
	for (int i = 0; i < NR_DEVICES; i++)
		child_join(pids[i]);

	/* All memory is freed, and the GPU that never worked used its 50 W. */
	mj = samples.devices[3].energy_mj;
	sleep_ms(600);
	asked = truth_now_ns();
	assert_int_equal(gpu_read(gpu, NULL, 0, asked, &samples), 0);
	after = truth_now_ns();
	mj = samples.devices[3].energy_mj - mj;
	assert_in_range(mj, (asked - before - took) / MS * 50 - 100,
			(after - before) / MS * 50 + 100);
	assert_int_equal(samples.nr_processes, 0);
	for (u32 i = 0; i < NR_DEVICES; i++) {
		assert_true(samples.devices[i].valid & GPU_HAS_UTILISATION);
		assert_int_equal(samples.devices[i].utilisation, 0);
		assert_int_equal(samples.devices[i].memory_used_bytes, 0);
	}
	gpu_free(gpu);
}

/* Stops the children also after a failed assertion. */
static int stop(void **state)
{
	shared->stop = 1;
	return tree_teardown(state);
}

/* With an argument, the driver has no performance monitoring. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_four_devices, tree_setup, stop),
	};

	has_gpm = argc < 2;
	harness_start("4", "1e9");
	if (!has_gpm)
		setenv("VGPU_GPM", "0", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return harness_end(1);
	return harness_end(cmocka_run_group_tests_name("gpu vgpu", tests, NULL, NULL));
}
