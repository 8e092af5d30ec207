/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the parser of an fdinfo text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "collect/fdinfo.h"

#define HEAD "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t438\n"

static struct fdinfo parse(const char *text)
{
	struct fdinfo info;

	assert_int_equal(fdinfo_parse(text, strlen(text), &info), 0);
	return info;
}

static u64 resident(const struct fdinfo *info)
{
	u64 bytes;

	assert_int_equal(fdinfo_resident(info, &bytes), 0);
	return bytes;
}

static void check_item(const struct fdinfo_item *item, const char *name, u32 field, u64 value)
{
	assert_string_equal(item->name, name);
	assert_true(item->valid & FDINFO_HAS(field));
	assert_int_equal(item->value[field], value);
}

static void test_integrated(void **state)
{
	struct fdinfo info = parse(HEAD "drm-driver:\ti915\n"
					"drm-client-id:\t7\n"
					"drm-pdev:\t0000:00:02.0\n"
					"drm-total-system0:\t1280 KiB\n"
					"drm-shared-system0:\t0\n"
					"drm-resident-system0:\t1024 KiB\n"
					"drm-resident-stolen-system0:\t4096\n"
					"drm-engine-render:\t9288864723 ns\n"
					"drm-engine-copy:\t2035071108 ns\n"
					"drm-engine-video:\t0 ns\n"
					"drm-engine-capacity-video:\t2\n");

	assert_int_equal(info.valid, FDINFO_HAS(FDINFO_DRIVER) | FDINFO_HAS(FDINFO_PDEV) |
					     FDINFO_HAS(FDINFO_CLIENT_ID));
	assert_string_equal(info.driver, "i915");
	assert_string_equal(info.pdev, "0000:00:02.0");
	assert_int_equal(info.client_id, 7);
	assert_int_equal(info.nr_left_out, 0);
	assert_int_equal(info.nr_engines, 3);
	check_item(&info.engines[0], "render", FDINFO_BUSY_NS, 9288864723);
	check_item(&info.engines[2], "video", FDINFO_BUSY_NS, 0);
	check_item(&info.engines[2], "video", FDINFO_CAPACITY, 2);
	assert_int_equal(info.engines[0].valid, FDINFO_HAS(FDINFO_BUSY_NS));
	check_item(&info.regions[0], "system0", FDINFO_TOTAL_BYTES, 1280 << 10);
	assert_int_equal(resident(&info), (1024 << 10) + 4096);
}

static void test_discrete(void **state)
{
	/* Both spellings, as newer kernels print them. System memory is not memory of the GPU. */
	struct fdinfo info = parse(HEAD "drm-driver:\tamdgpu\n"
					"drm-client-id:\t28\n"
					"drm-pdev:\t0000:C3:00.0\n"
					"pasid:\t32771\n"
					"drm-memory-vram:\t 3072 KiB\n"
					"drm-memory-gtt: \t2048 KiB\n"
					"drm-memory-cpu: \t0 KiB\n"
					"drm-resident-vram:\t3 MiB\n"
					"amd-memory-visible-vram:\t3072 KiB\n"
					"drm-engine-gfx:\t188000 ns\n"
					"drm-engine-compute:\t5 ns\n");

	assert_string_equal(info.pdev, "0000:c3:00.0");
	assert_int_equal(info.nr_regions, 3);
	assert_int_equal(resident(&info), 3 << 20);
	info.regions[0].valid &= ~FDINFO_HAS(FDINFO_RESIDENT_BYTES);
	assert_int_equal(resident(&info), 3072 << 10);
}

static void test_device_clock(void **state)
{
	struct fdinfo info = parse(HEAD "drm-driver:\txe\n"
					"drm-client-id:\t3\n"
					"drm-pdev:\t0000:03:00.0\n"
					"drm-total-vram0:\t64 MiB\n"
					"drm-resident-vram0:\t48 MiB\n"
					"drm-resident-gtt:\t192 KiB\n"
					"drm-cycles-rcs:\t28257900\n"
					"drm-total-cycles-rcs:\t7655183225\n"
					"drm-cycles-vcs:\t0\n"
					"drm-total-cycles-vcs:\t7655183225\n"
					"drm-engine-capacity-vcs:\t2\n");

	assert_int_equal(info.nr_engines, 2);
	check_item(&info.engines[0], "rcs", FDINFO_CYCLES, 28257900);
	check_item(&info.engines[0], "rcs", FDINFO_TOTAL_CYCLES, 7655183225);
	assert_false(info.engines[0].valid & FDINFO_HAS(FDINFO_BUSY_NS));
	check_item(&info.engines[1], "vcs", FDINFO_CAPACITY, 2);
	assert_int_equal(resident(&info), 48 << 20);
}

static void test_not_drm(void **state)
{
	struct fdinfo info = { .nr_engines = 77 };
	static const char eventfd[] = HEAD "eventfd-count:                0\neventfd-id: 3\n";

	assert_int_equal(fdinfo_parse(eventfd, strlen(eventfd), &info), -ENODATA);
	assert_int_equal(fdinfo_parse("", 0, &info), -ENODATA);
	assert_int_equal(fdinfo_parse(NULL, 0, &info), -ENODATA);
	assert_int_equal(info.nr_engines, 77);
}

/* Each of these lines is invalid and must be left out. */
static void test_lines_left_out(void **state)
{
	static const char *const lines[] = {
		"drm-pdev: ../../etc/passwd\n",
		"drm-pdev: \n",
		"drm-client-id: -1\n",
		"drm-client-id: 18446744073709551616\n",
		"drm-client-id: 5 ns\n",
		"drm-engine-: 5 ns\n",
		"drm-engine-x: ns\n",
		"drm-engine-x: 5 us\n",
		"drm-engine-x: 5 KiB\n",
		"drm-engine-x: 0x10 ns\n",
		"drm-engine-abcdefghijklmnopqrstuvwxyzabcdef: 5 ns\n",
		"drm-resident-x: 99999999999999999 KiB\n",
		"drm-resident-x: 1 GB\n",
		"drm-memory-x: 1.5 MiB\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char text[256];
		struct fdinfo info;

		snprintf(text, sizeof(text), "drm-driver: d\n%s", lines[i]);
		info = parse(text);
		if (info.nr_left_out != 1 || info.nr_engines || info.nr_regions ||
		    info.valid != FDINFO_HAS(FDINFO_DRIVER))
			fail_msg("invalid line was accepted: %s", lines[i]);
	}
}

static void test_a_truncated_line_is_ignored(void **state)
{
	struct fdinfo info = parse("drm-driver: d\ndrm-engine-x: 1 ns\ndrm-engine-x: 12345");

	check_item(&info.engines[0], "x", FDINFO_BUSY_NS, 1);
}

static void test_too_many_engines(void **state)
{
	char text[4096];
	int length = snprintf(text, sizeof(text), "drm-driver: d\n");
	struct fdinfo info;

	for (int i = 0; i < FDINFO_ENGINES + 3; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length,
				   "drm-engine-e%d: %d ns\n", i, i);
	info = parse(text);
	assert_int_equal(info.nr_engines, FDINFO_ENGINES);
	assert_int_equal(info.nr_left_out, 3);
	check_item(&info.engines[FDINFO_ENGINES - 1], "e15", FDINFO_BUSY_NS, 15);
}

static void test_resident_unknown(void **state)
{
	struct fdinfo info = parse("drm-driver: d\ndrm-total-vram: 5 KiB\n");
	u64 bytes;

	assert_int_equal(fdinfo_resident(&info, &bytes), -ENODATA);
	info = parse("drm-driver: d\ndrm-resident-a: 18446744073709551615\ndrm-resident-b: 1\n");
	assert_int_equal(fdinfo_resident(&info, &bytes), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integrated),
		cmocka_unit_test(test_discrete),
		cmocka_unit_test(test_device_clock),
		cmocka_unit_test(test_not_drm),
		cmocka_unit_test(test_lines_left_out),
		cmocka_unit_test(test_a_truncated_line_is_ignored),
		cmocka_unit_test(test_too_many_engines),
		cmocka_unit_test(test_resident_unknown),
	};

	return cmocka_run_group_tests_name("fdinfo", tests, NULL, NULL);
}
