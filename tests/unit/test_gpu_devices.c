/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which character devices are GPUs. The list of drivers is in a directory that replaces /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/macros.h"
#include "collect/gpu_devices.h"

static char proc[] = "/tmp/test_gpu_devices.XXXXXX";

static void put_drivers(const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/devices", proc);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_known_devices(void **state)
{
	static const struct {
		const char *name;
		u32 major, minor;
		bool is_gpu;
	} cases[] = {
		{ "nvidia0", 195, 0, true },
		{ "nvidia253", 195, 253, true },
		{ "nvidia-modeset", 195, 254, false },
		{ "nvidiactl", 195, 255, false },
		{ "card0", 226, 0, false },
		{ "renderD128", 226, 128, true },
		{ "renderD191", 226, 191, true },
		{ "beyond", 226, 192, false },
		{ "null", 1, 3, false },
		{ "zero number", 0, 0, false },
		{ "kfd", 235, 0, true },
		{ "another of kfd", 235, 1, false },
	};
	struct gpu_devices devices;

	put_drivers("Character devices:\n  1 mem\n235 kfd\n236 kfd2\n\nBlock devices:\n240 kfd\n");
	assert_int_equal(gpu_devices_find(proc, "", &devices), 0);
	assert_int_equal(devices.nr, 3);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if ((gpu_devices_find_file(&devices, cases[i].major, cases[i].minor).kind !=
		     GPU_FILE_NONE) != cases[i].is_gpu)
			fail_msg("%s", cases[i].name);
	put_drivers("Character devices:\n  1 mem\n");
	assert_int_equal(gpu_devices_find(proc, "", &devices), 0);
	assert_false((gpu_devices_find_file(&devices, 235, 0).kind != GPU_FILE_NONE));
}

static void test_files(void **state)
{
	struct gpu_devices devices;

	assert_int_equal(gpu_devices_find(proc, "/dev/full", &devices), 0);
	assert_true((gpu_devices_find_file(&devices, 1, 7).kind != GPU_FILE_NONE));
	assert_false((gpu_devices_find_file(&devices, 1, 3).kind != GPU_FILE_NONE));
	/* A folder, a regular file and a missing file are no devices. */
	assert_int_equal(
		gpu_devices_find(proc, "/,/dev/zero,/etc/passwd,/nonexistent,/dev/full", &devices),
		3);
	assert_true((gpu_devices_find_file(&devices, 1, 5).kind != GPU_FILE_NONE));
	assert_true((gpu_devices_find_file(&devices, 1, 7).kind != GPU_FILE_NONE));
}

static int setup(void **state)
{
	return mkdtemp(proc) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/devices", proc);
	remove(path);
	return rmdir(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_devices),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests_name("GPU devices", tests, setup, teardown);
}
