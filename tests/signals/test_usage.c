/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What PyTorch's allocator reports, on the machine's own kernel. Argument: a library with the call.
 */
#include "signals/native.h"

#include <sys/wait.h>
#include <unistd.h>
#include "base/time.h"
#include "signals/oom.h"

#define GIB  (1ULL << 30)
#define HOUR (3600 * NSEC_PER_SEC)

static const char *torch_lib;
static struct library torch;

static struct kernel *probes_attach(bool has_extra)
{
	struct kernel *kernel = native_kernel();

	torch = native_library(torch_lib, RUNTIME_C10, -1);
	torch.has_extra = has_extra;
	assert_int_equal(kernel_attach_library(kernel, &torch), 0);
	return kernel;
}

/* Watches this process. Now is in the middle of a part. */
static void watch(struct kernel *kernel, u32 part)
{
	struct usage_process process = { .begin_ns = time_now_ns() - part * HOUR - HOUR / 2,
					 .part_ns = HOUR };

	assert_int_equal(kernel_begin_usage(kernel, (u32)getpid(), &process), 0);
}

static void use(s8 number, u64 allocated, u64 reserved)
{
	oom_use_call(1, allocated, reserved, (struct oom_test_device){ OOM_TEST_CUDA, number });
}

static int read_usage(const struct kernel *kernel, u32 tgid, u32 device, struct usage *ret)
{
	struct usage_key key = { .tgid = tgid, .device = device };

	return kernel_read_usage(kernel, &key, ret);
}

static void reports_of_a_watched_process(void **state)
{
	struct kernel *kernel = probes_attach(true);
	struct usage usage;

	use(0, 1, 2); /* before the watch */
	watch(kernel, 3);
	use(0, 30 * GIB, 36 * GIB);
	use(0, 31 * GIB, 36 * GIB);
	use(0, 29 * GIB, 35 * GIB);
	use(2, GIB, 2 * GIB);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), 0);
	for (u32 i = 0; i < USAGE_PARTS; i++)
		assert_int_equal(usage.parts[i].nr, i == 3 ? 3 : 0);
	assert_int_equal(usage.parts[3].allocated_bytes, 29 * GIB);
	assert_int_equal(usage.parts[3].reserved_bytes, 35 * GIB);
	assert_int_equal(usage.parts[3].allocated_most, 31 * GIB);
	assert_int_equal(usage.parts[3].reserved_then, 36 * GIB);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 1, &usage), -ENOENT);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 2, &usage), 0);
	assert_int_equal(usage.parts[3].allocated_bytes, GIB);
	kernel_end_usage(kernel, (u32)getpid());
	assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), -ENOENT);
	use(0, 1, 2);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), -ENOENT);
	kernel_free(kernel);
}

/* About the CPU, a GPU without a number, and after the end. */
static void reports_that_do_not_count(void **state)
{
	struct kernel *kernel = probes_attach(true);
	struct usage usage;

	watch(kernel, USAGE_PARTS - 1);
	oom_use_call(1, 2, 3, OOM_TEST_CPU);
	use(-1, 2, 3);
	use(GPU_MAX, 2, 3);
	use(0, USAGE_BYTES_MAX + 1, 3);
	use(0, 2, ~0ULL);
	for (u32 device = 0; device <= GPU_MAX; device++)
		assert_int_equal(read_usage(kernel, (u32)getpid(), device, &usage), -ENOENT);
	use(GPU_MAX - 1, 2, 3);
	assert_int_equal(read_usage(kernel, (u32)getpid(), GPU_MAX - 1, &usage), 0);
	assert_int_equal(usage.parts[USAGE_PARTS - 1].nr, 1);
	kernel_end_usage(kernel, (u32)getpid());
	watch(kernel, USAGE_PARTS);
	use(0, 2, 3);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), -ENOENT);
	kernel_free(kernel);
}

static void other_processes_are_ignored(void **state)
{
	struct kernel *kernel = probes_attach(true);
	struct usage usage;
	pid_t child;

	watch(kernel, 0);
	child = fork();
	if (child == 0) {
		use(0, 5, 6);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read_usage(kernel, (u32)child, 0, &usage), -ENOENT);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), -ENOENT);
	kernel_free(kernel);
}

/* The allocator is probed only while it is wanted. An error is reported at all times. */
static void probes_come_and_go(void **state)
{
	struct kernel *kernel = probes_attach(false);
	struct usage usage;

	watch(kernel, 0);
	use(0, 1, 2);
	assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), -ENOENT);
	for (u32 i = 1; i <= 3; i++) {
		torch.has_extra = true;
		assert_int_equal(kernel_set_extra(kernel, &torch), 0);
		use(0, i, 2);
		torch.has_extra = false;
		assert_int_equal(kernel_set_extra(kernel, &torch), 0);
		use(0, 100, 100);
		assert_int_equal(read_usage(kernel, (u32)getpid(), 0, &usage), 0);
		assert_int_equal(usage.parts[0].nr, i);
		assert_int_equal(usage.parts[0].allocated_bytes, i);
	}
	kernel_free(kernel);
}

static void processes_are_bounded(void **state)
{
	const struct usage_process process = { .begin_ns = 1, .part_ns = 1 };
	struct kernel *kernel = probes_attach(false);

	for (u32 i = 1; i <= USAGE_PROCESSES; i++)
		assert_int_equal(kernel_begin_usage(kernel, i, &process), 0);
	assert_int_equal(kernel_begin_usage(kernel, 7, &process), -EEXIST);
	assert_int_equal(kernel_begin_usage(kernel, USAGE_PROCESSES + 1, &process), -E2BIG);
	kernel_end_usage(kernel, 7);
	assert_int_equal(kernel_begin_usage(kernel, USAGE_PROCESSES + 1, &process), 0);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_of_a_watched_process),
		cmocka_unit_test(reports_that_do_not_count),
		cmocka_unit_test(other_processes_are_ignored),
		cmocka_unit_test(probes_come_and_go),
		cmocka_unit_test(processes_are_bounded),
	};

	torch_lib = argc > 1 ? argv[1] : "";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
