/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests NVML that is missing or incomplete. tests/daemon has one that hangs. */
#include "base/time.h"
#include "collect/tree.h"

#include <dlfcn.h>
#include <errno.h>
#include <time.h>

#include "base/cleanup.h"
#include "collect/fake_nvml.h"

#define MS NSEC_PER_MSEC

static const char *fakes; /* the directory of the fake libraries */
static struct gpu_samples samples;

/* Loads the library, so that its state is initial; the caller closes it. */
static void *fake_load(const char *name, struct fake_nvml **ret)
{
	static char path[512];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", fakes, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	*ret = dlsym(library, "fake_nvml");
	assert_non_null(*ret);
	tree_config.nvml_library = path;
	return library;
}

static struct gpu *open_gpu(void)
{
	struct gpu *gpu = NULL;

	assert_int_equal(gpu_new(&tree_config, &gpu), 0);
	return gpu;
}

static void read_gpu(struct gpu *gpu)
{
	assert_int_equal(gpu_read(gpu, NULL, 0, time_now_ns(), &samples), 0);
}

static void test_absent_library(void **state)
{
	struct gpu *gpu = open_gpu();

	read_gpu(gpu);
	assert_int_equal(samples.nr_devices, 0);
	assert_int_equal(samples.nr_processes, 0);
	assert_int_equal(samples.nr_stalled, 0);
	assert_null(gpu_free(gpu));
	assert_null(gpu_free(NULL));
}

static void test_driver_not_loaded(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml.so", &fake);
	struct gpu *gpu;

	fake->init_result = 9;
	gpu = open_gpu();
	read_gpu(gpu);
	assert_int_equal(samples.nr_devices, 0);
	assert_int_equal(samples.nr_stalled, 0);
	gpu_free(gpu);
	assert_int_equal(fake->nr_init, 1);
	assert_int_equal(fake->nr_shutdown, 0);
	dlclose(library);
}

static void test_required_symbol_missing(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml-broken.so", &fake);
	struct gpu *gpu = open_gpu();

	read_gpu(gpu);
	assert_int_equal(samples.nr_devices, 0);
	assert_int_equal(fake->nr_init, 0);
	gpu_free(gpu);
	dlclose(library);
}

static void test_optional_symbols_missing(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml-minimal.so", &fake);
	struct gpu *gpu = open_gpu();

	read_gpu(gpu);
	assert_int_equal(samples.nr_devices, 2);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(samples.devices[i].valid, 0);
		assert_int_equal(samples.devices[i].index, i);
		assert_int_equal(samples.devices[i].numa_node, -1);
	}
	assert_int_equal(samples.nr_processes, 0);
	gpu_free(gpu);
	assert_int_equal(fake->nr_shutdown, 1);
	dlclose(library);
}

static void test_fallbacks(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml.so", &fake);
	struct gpu *gpu;

	tree_write(tree_path("sys/bus/pci/devices/0000:3c:00.0/numa_node"), "3\n");
	gpu = open_gpu();
	read_gpu(gpu);
	assert_int_equal(samples.nr_devices, 2);
	assert_int_equal(samples.devices[0].valid, GPU_HAS_PCI_ADDRESS | GPU_HAS_UTILISATION |
							   GPU_HAS_MEMORY_USED |
							   GPU_HAS_MEMORY_TOTAL);
	assert_int_equal(samples.devices[0].utilisation, 40);
	assert_int_equal(samples.devices[0].memory_used_bytes, 300);
	assert_int_equal(samples.devices[0].memory_total_bytes, 1000);
	assert_true(samples.devices[1].valid & GPU_HAS_NUMA_NODE);
	assert_int_equal(samples.devices[1].numa_node, 3);
	assert_int_equal(samples.nr_processes, 4);
	assert_int_equal(samples.processes[2].gpu, 1);
	assert_int_equal(samples.processes[0].pid, 7);
	assert_int_equal(samples.processes[0].valid, GPU_HAS_MEMORY_USED | GPU_HAS_UTILISATION);
	assert_int_equal(samples.processes[0].memory_used_bytes, 123);
	assert_int_equal(samples.processes[0].utilisation, 66);
	assert_int_equal(samples.processes[1].pid, 8);
	assert_int_equal(samples.processes[1].valid, 0);
	/*
	 * Without a new sample, the utilization is not valid; it is neither the old value nor zero.
	 */
	read_gpu(gpu);
	assert_int_equal(samples.processes[0].valid, GPU_HAS_MEMORY_USED);
	/* A lost GPU has no valid values and keeps its place. */
	fake->fail = 15;
	read_gpu(gpu);
	assert_int_equal(samples.nr_devices, 2);
	assert_int_equal(samples.devices[0].valid, GPU_HAS_PCI_ADDRESS);
	assert_int_equal(samples.nr_processes, 0);
	gpu_free(gpu);
	dlclose(library);
}

/* The sum has no gaps, also when the GPU does not answer in between. */
static void test_activity(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml-gpm.so", &fake);
	struct gpu *gpu = open_gpu();
	u64 before[2] = { time_now_ns() }, after[2];

	read_gpu(gpu);
	before[1] = time_now_ns();
	assert_true(samples.devices[0].valid & GPU_HAS_ACTIVE);
	assert_int_equal(samples.devices[0].active_ns, 0);
	assert_false(samples.devices[1].valid & GPU_HAS_ACTIVE);
	for (int i = 0; i < 3; i++) {
		usleep(20000);
		fake->fail = i == 1 ? 15 : 0;
		after[0] = time_now_ns();
		read_gpu(gpu);
		after[1] = time_now_ns();
		assert_int_equal(!(samples.devices[0].valid & GPU_HAS_ACTIVE), i == 1);
	}
	assert_in_range(samples.devices[0].active_ns, (after[0] - before[1]) / 4 - 10,
			(after[1] - before[0]) / 4);
	gpu_free(gpu);
	dlclose(library);
}

/* Performance monitoring is used where it exists, and its sum has no gaps. */
static void test_busy_time_by_monitoring(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml-gpm.so", &fake);
	struct gpu *gpu = open_gpu();
	const struct gpu_busy_time *busy = &samples.devices[0].busy;
	u64 since;

	fake->nr_samples = 1;
	fake->sample_us[0] = 1000;
	read_gpu(gpu);
	assert_true(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	assert_false(samples.devices[1].valid & GPU_HAS_BUSY_TIME);
	since = busy->since_ns;
	for (int i = 0; i < 3; i++) {
		usleep(20000);
		fake->fail = i == 1 ? 15 : 0;
		read_gpu(gpu);
		assert_int_equal(!(samples.devices[0].valid & GPU_HAS_BUSY_TIME), i == 1);
	}
	assert_int_equal(busy->counter, GPU_COUNTER_GPM);
	assert_int_equal(busy->since_ns, since);
	assert_int_equal(busy->at_ns, samples.devices[0].active_at_ns);
	assert_in_range(busy->busy_ns, (busy->at_ns - since) * 3 / 4 - 10,
			(busy->at_ns - since) * 3 / 4);
	assert_in_range(busy->period_ns, 1, busy->at_ns - since);
	/* A GPU without this metric is measured by its utilization. */
	fake->no_graphics = 3;
	read_gpu(gpu);
	assert_true(samples.devices[0].valid & GPU_HAS_ACTIVE);
	assert_true(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	assert_int_equal(busy->counter, GPU_COUNTER_UTILIZATION);
	gpu_free(gpu);
	dlclose(library);
}

static void add_sample(struct fake_nvml *fake, u64 time_us, u32 percent)
{
	fake->sample_us[fake->nr_samples] = time_us;
	fake->sample_percent[fake->nr_samples++] = percent;
}

/* `first_us` is the time of the first sample on the clock of the driver. */
static void check_busy_time_by_utilization(u64 first_us)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml.so", &fake);
	struct gpu *gpu = open_gpu();
	const struct gpu_busy_time *busy = &samples.devices[0].busy;
	u64 since;

	fake->nr_samples = 0;
	read_gpu(gpu);
	assert_false(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	/* The sum starts at the newest sample. */
	add_sample(fake, first_us - 500000, 100);
	add_sample(fake, first_us, 100);
	read_gpu(gpu);
	assert_true(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	assert_false(samples.devices[1].valid & GPU_HAS_BUSY_TIME);
	assert_int_equal(busy->counter, GPU_COUNTER_UTILIZATION);
	assert_int_equal(busy->busy_ns, 0);
	since = busy->since_ns;
	assert_int_equal(busy->at_ns, since);
	/* All samples since the last call count, each for its own period. */
	add_sample(fake, first_us + 200000, 50);
	add_sample(fake, first_us + 300000, 100);
	read_gpu(gpu);
	assert_int_equal(busy->busy_ns, 200 * MS);
	assert_int_equal(busy->at_ns, since + 300 * MS);
	assert_int_equal(busy->since_ns, since);
	assert_int_equal(busy->period_ns, 100 * MS);
	/* Without a new sample, the sum is known up to the last one. */
	read_gpu(gpu);
	assert_true(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	assert_int_equal(busy->at_ns, since + 300 * MS);
	/* After lost samples, the sum starts again. */
	add_sample(fake, first_us + 2300000, 100);
	read_gpu(gpu);
	assert_int_equal(busy->busy_ns, 0);
	assert_true(busy->since_ns != since);
	/* The same after an error. */
	add_sample(fake, first_us + 2400000, 100);
	read_gpu(gpu);
	assert_int_equal(busy->busy_ns, 100 * MS);
	fake->fail = 15;
	read_gpu(gpu);
	assert_false(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	fake->fail = 0;
	read_gpu(gpu);
	assert_true(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	assert_int_equal(busy->busy_ns, 0);
	gpu_free(gpu);
	dlclose(library);
}

static void test_busy_time_by_utilization(void **state)
{
	u64 now_ns = time_now_ns(), wall_us = time_of_ns(CLOCK_REALTIME) / NSEC_PER_USEC;

	check_busy_time_by_utilization(wall_us - 100000);
	/* The clock of the driver may be any clock. */
	check_busy_time_by_utilization(7000000);
	assert_in_range(samples.devices[0].busy.since_ns, now_ns, time_now_ns());
}

/* A sample on the wall clock is placed where it was taken, not where it was read. */
static void test_busy_time_has_the_time_of_its_samples(void **state)
{
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml.so", &fake);
	struct gpu *gpu = open_gpu();
	u64 before = time_now_ns(), wall_us = time_of_ns(CLOCK_REALTIME) / NSEC_PER_USEC;
	u64 after = time_now_ns();

	fake->nr_samples = 0;
	add_sample(fake, wall_us - 200000, 10);
	read_gpu(gpu);
	/* If the call took long, the sample is too old to be placed. */
	if (time_now_ns() - before < NSEC_PER_SEC)
		assert_in_range(samples.devices[0].busy.at_ns, before - 202 * MS, after - 198 * MS);
	gpu_free(gpu);
	dlclose(library);
}

/*
 * A second source adds nothing to a known GPU. A GPU that only the second source sees is
 * appended.
 */
static void test_two_sources_one_device(void **state)
{
	static const char format[] = "drm-driver: d\ndrm-client-id: 1\ndrm-pdev: %s\n"
				     "drm-resident-vram: 5 KiB\n";
	const pid_t pids[] = { 10 };
	struct fake_nvml *fake;
	void *library = fake_load("libfake-nvml.so", &fake);
	struct gpu *gpu = open_gpu();
	char text[256];

	snprintf(text, sizeof(text), format, "0000:3b:00.0");
	tree_write(tree_path("proc/10/fdinfo/3"), text);
	snprintf(text, sizeof(text), format, "0000:00:02.0");
	tree_write(tree_path("proc/10/fdinfo/4"), text);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gpu_read(gpu, pids, 1, time_now_ns(), &samples), 0);
		assert_int_equal(samples.nr_devices, 3);
		assert_int_equal(samples.devices[2].index, 2);
		assert_string_equal(samples.devices[2].pci_address, "0000:00:02.0");
		assert_int_equal(samples.nr_processes, 5);
		assert_int_equal(samples.processes[4].pid, 10);
		assert_int_equal(samples.processes[4].gpu, 2);
	}
	gpu_free(gpu);
	dlclose(library);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_absent_library),
		TREE_TEST(test_driver_not_loaded),
		TREE_TEST(test_required_symbol_missing),
		TREE_TEST(test_optional_symbols_missing),
		TREE_TEST(test_fallbacks),
		TREE_TEST(test_activity),
		TREE_TEST(test_busy_time_by_monitoring),
		TREE_TEST(test_busy_time_by_utilization),
		TREE_TEST(test_busy_time_has_the_time_of_its_samples),
		TREE_TEST(test_two_sources_one_device),
	};

	if (argc != 2)
		return 2;
	fakes = argv[1];
	alarm(400);
	return cmocka_run_group_tests_name("gpu nvml", tests, NULL, NULL);
}
