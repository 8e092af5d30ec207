/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the order of GPUs in sysfs and what KFD lists, in a directory that replaces /sys. */
#include "collect/tree.h"

#include "collect/gpu_drm.h"
#include "collect/gpu_node.h"

#define NOW 1000

static struct gpu *gpu;
static struct gpu_samples samples;
static struct gpu_node node;

static void put_gpu(const char *address, const char *vendor, u32 render)
{
	tree_write(tree_path("sys/bus/pci/devices/%s/vendor", address), vendor);
	tree_write(tree_path("sys/bus/pci/devices/%s/drm/renderD%u/dev", address, render), "");
	tree_write(tree_path("sys/bus/pci/devices/%s/drm/card%u/dev", address, render - 128), "");
}

static void put_kfd(u32 number, u32 gpu_id, const char *properties)
{
	char text[16];

	snprintf(text, sizeof(text), "%u\n", gpu_id);
	tree_write(tree_path("sys/class/kfd/kfd/topology/nodes/%u/gpu_id", number), text);
	tree_write(tree_path("sys/class/kfd/kfd/topology/nodes/%u/properties", number), properties);
}

static void put_queue(u32 pid, u32 queue, const char *gpu_id)
{
	tree_write(tree_path("sys/class/kfd/kfd/proc/%u/queues/%u/gpuid", pid, queue), gpu_id);
}

/* The names of the files and the order of KFD are not the order of the addresses. */
static int setup(void **state)
{
	if (tree_setup(state) < 0)
		return -1;
	put_gpu("0000:c3:00.0", "0x1002\n", 128);
	put_gpu("0000:03:00.0", "0x1002\n", 130);
	put_gpu("0000:43:00.0", "0x8086\n", 129);
	put_gpu("0000:01:00.0", "0x10de\n", 131);
	put_gpu("0001:02:00.0", "0x1002\n", 132);
	tree_write(tree_path("sys/bus/pci/devices/0000:00:1f.0/vendor"), "0x8086\n");
	put_kfd(0, 0, "cpu_cores_count 64\n");
	put_kfd(1, 50001,
		"simd_count 304\nlocation_id 49920\ndomain 0\nunique_id 81985529216486895\n"
		"drm_render_minor 128\n");
	put_kfd(2, 50002, "unique_id 0\nlocation_id 768\ndomain 0\n");
	put_kfd(3, 50003, "location_id 512\ndomain 1\nunique_id 17\n");
	return gpu_new(&tree_config, &gpu);
}

static int teardown(void **state)
{
	gpu = gpu_free(gpu);
	return tree_teardown(state);
}

static void read_samples(u32 pid)
{
	assert_int_equal(gpu_read(gpu, &(pid_t){ (pid_t)pid }, 1, NOW, &samples), 0);
	gpu_node_of(&samples, &node);
}

static void test_gpus_are_numbered_by_address(void **state)
{
	static const char *const addresses[] = { "0000:03:00.0", "0000:43:00.0", "0000:c3:00.0",
						 "0001:02:00.0" };
	static const u32 files[] = { 130, 129, 128, 132 };

	/* The process uses the third GPU first. */
	tree_write(tree_path("proc/7/fdinfo/3"),
		   "drm-driver:\tamdgpu\ndrm-client-id:\t1\ndrm-pdev:\t0000:c3:00.0\n");
	read_samples(7);
	assert_int_equal(samples.nr_devices, ARRAY_SIZE(addresses));
	for (u32 i = 0; i < ARRAY_SIZE(addresses); i++) {
		assert_int_equal(samples.devices[i].index, i);
		assert_string_equal(samples.devices[i].pci_address, addresses[i]);
		assert_int_equal(samples.devices[i].render_file, files[i]);
		assert_int_equal(node.devices[i].files[GPU_FILE_RENDER], 1ULL << (files[i] - 128));
	}
	assert_string_equal(samples.devices[2].name, "amdgpu");
	assert_int_equal(samples.processes[0].gpu, 2);
	assert_int_equal(samples.processes[0].is_listed, 0);
	/* A GPU that is plugged in later gets the next number. */
	tree_write(tree_path("proc/7/fdinfo/4"),
		   "drm-driver:\txe\ndrm-client-id:\t1\ndrm-pdev:\t0000:00:02.0\n");
	read_samples(7);
	assert_int_equal(samples.nr_devices, 5);
	assert_string_equal(samples.devices[4].pci_address, "0000:00:02.0");
}

static void test_unique_ids(void **state)
{
	read_samples(7);
	assert_false(samples.devices[0].valid & GPU_HAS_UUID);
	assert_string_equal(samples.devices[2].uuid, "GPU-0123456789abcdef");
	assert_true(node.devices[2].has_uuid);
	assert_memory_equal(&node.devices[2].uuid, "0123456789abcdef", 16);
	assert_string_equal(samples.devices[3].uuid, "GPU-0000000000000011");
}

static struct gpu_numbers identify(u32 pid)
{
	struct gpu_facts facts = { .claims.used = 1 << 0 };
	struct gpu_numbers numbers;

	gpu_places_of(&samples, pid, NOW, &facts);
	gpu_identify(&node, &facts, &numbers);
	return numbers;
}

static void test_queues_tell_the_gpu(void **state)
{
	put_queue(7, 0, "50001\n");
	put_queue(7, 1, "50001\n");
	put_queue(8, 0, "50001\n");
	put_queue(8, 1, "50003\n");
	read_samples(7);
	assert_int_equal(samples.nr_processes, 1);
	assert_int_equal(identify(7).of[0], 2 + 1);
	assert_int_equal(identify(7).basis[0], GPU_BASIS_DRIVER);
	read_samples(8);
	assert_int_equal(samples.nr_processes, 2);
	assert_int_equal(identify(8).of[0], 0);
	/* The list of a process that is not asked for is not read. */
	assert_int_equal(identify(7).of[0], 0);
}

/* The process may also use a GPU that is not known. */
static void test_a_queue_of_an_unknown_gpu(void **state)
{
	put_queue(7, 0, "50001\n");
	put_queue(7, 1, "4711\n");
	read_samples(7);
	assert_int_equal(samples.nr_unlisted, 1);
	assert_int_equal(identify(7).of[0], 0);
}

/* It can be about an ended process with the same pid. */
static void test_a_list_that_is_older_than_the_process(void **state)
{
	struct gpu_facts facts = {};

	put_queue(7, 0, "50001\n");
	read_samples(7);
	gpu_places_of(&samples, 7, NOW + 1, &facts);
	assert_int_equal(facts.nr_places, 0);
	gpu_places_of(&samples, 7, NOW, &facts);
	assert_int_equal(facts.nr_places, 1);
}

static void test_no_kfd(void **state)
{
	struct kfd_gpu gpus[GPU_MAX_DEVICES];
	struct drm_gpu drm[GPU_MAX_DEVICES];

	assert_int_equal(kfd_gpus_list("/nonexistent", gpus), 0);
	assert_int_equal(drm_gpus_list("/nonexistent", drm), 0);
	assert_true(kfd_queues_list("/nonexistent", 7, NULL, NULL));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_gpus_are_numbered_by_address),
		TEST(test_unique_ids),
		TEST(test_queues_tell_the_gpu),
		TEST(test_a_queue_of_an_unknown_gpu),
		TEST(test_a_list_that_is_older_than_the_process),
		TEST(test_no_kfd),
	};

	return cmocka_run_group_tests_name("gpu drm", tests, NULL, NULL);
}
