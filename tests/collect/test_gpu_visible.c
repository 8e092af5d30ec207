/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_visible.h"
#include "collect/tree.h"

#include <errno.h>

/* A device that the process does not have, or that is unknown. */
#define NONE 0xff

static void check(const struct gpu_numbers *numbers, const u8 *expected, u32 nr)
{
	for (u32 i = 0; i < GPU_MAX; i++)
		assert_int_equal((u8)(numbers->of[i] - 1), i < nr ? expected[i] : NONE);
}

#define CHECK_LIST(list, ...)                                                                      \
	do {                                                                                       \
		struct gpu_numbers all = gpu_visible_all(), got = gpu_visible_by(&all, list);      \
		const u8 expected[] = { __VA_ARGS__ };                                             \
		check(&got, expected, sizeof(expected));                                           \
	} while (0)

static void test_lists(void **state)
{
	CHECK_LIST("2,0", 2, 0);
	CHECK_LIST("15", 15);
	CHECK_LIST("0,GPU-1234-5678,3", 0, NONE, 3);
	CHECK_LIST("MIG-GPU-1234/1/0,1", NONE, 1);
}

static void test_lists_end_at_the_first_invalid_device(void **state)
{
	CHECK_LIST("1,-1,2", 1);
	CHECK_LIST("1,16,2", 1);
	CHECK_LIST("1,x,2", 1);
	CHECK_LIST("1,2x,3", 1);
	CHECK_LIST("1,,2", 1);
	CHECK_LIST("1, 2", 1);
	CHECK_LIST("4294967296");
	CHECK_LIST("99999999999999999999999");
	CHECK_LIST("");
	CHECK_LIST("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0,1", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
		   11, 12, 13, 14, 15);
}

static void write_environment(const char *text, size_t size)
{
	tree_write_bytes(tree_path("7/environ"), text, size);
}

#define WRITE_ENVIRONMENT(text) write_environment(text, sizeof(text))

static struct gpu_numbers read_for(enum runtime runtime)
{
	struct gpu_numbers numbers;

	assert_int_equal(gpu_visible_read(tree_root, 7, runtime, &numbers), 0);
	return numbers;
}

static void test_each_runtime_has_its_variable(void **state)
{
	struct gpu_numbers all = gpu_visible_all(), got;

	WRITE_ENVIRONMENT("PATH=/bin\0CUDA_VISIBLE_DEVICES=3,1\0HIP_VISIBLE_DEVICES=2");
	got = read_for(RUNTIME_CUDA);
	check(&got, (const u8[]){ 3, 1 }, 2);
	got = read_for(RUNTIME_CUDA_DRIVER);
	check(&got, (const u8[]){ 3, 1 }, 2);
	got = read_for(RUNTIME_HIP);
	check(&got, (const u8[]){ 2 }, 1);
	got = read_for(RUNTIME_OPENCL);
	assert_memory_equal(&got, &all, sizeof(all));
}

static void test_variables_build_on_each_other(void **state)
{
	struct gpu_numbers got;

	WRITE_ENVIRONMENT("HIP_VISIBLE_DEVICES=1,0\0ROCR_VISIBLE_DEVICES=5,4,3");
	got = read_for(RUNTIME_HIP);
	check(&got, (const u8[]){ 4, 5 }, 2);
}

static void test_no_variable_and_no_process(void **state)
{
	struct gpu_numbers all = gpu_visible_all(), got;

	WRITE_ENVIRONMENT("MY_CUDA_VISIBLE_DEVICES=1");
	got = read_for(RUNTIME_CUDA);
	assert_memory_equal(&got, &all, sizeof(all));
	write_environment("", 0);
	got = read_for(RUNTIME_CUDA);
	assert_memory_equal(&got, &all, sizeof(all));
	assert_int_equal(gpu_visible_read(tree_root, 8, RUNTIME_CUDA, &got), -ENOENT);
}

/* A process can make its environment as large as its memory. */
static void test_a_large_environment_is_not_read(void **state)
{
	static char large[4 << 20] = "CUDA_VISIBLE_DEVICES=3";
	struct gpu_numbers got;

	write_environment(large, sizeof(large) / 4);
	got = read_for(RUNTIME_CUDA);
	check(&got, (const u8[]){ 3 }, 1);
	write_environment(large, sizeof(large));
	assert_int_equal(gpu_visible_read(tree_root, 7, RUNTIME_CUDA, &got), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_lists_end_at_the_first_invalid_device),
		cmocka_unit_test(test_each_runtime_has_its_variable),
		cmocka_unit_test(test_variables_build_on_each_other),
		cmocka_unit_test(test_no_variable_and_no_process),
		cmocka_unit_test(test_a_large_environment_is_not_read),
	};

	return cmocka_run_group_tests_name("gpu_visible", tests, tree_setup, tree_teardown);
}
