/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests what the text of cgroup files says about CPU limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/cpu_limit.h"

struct quota_case {
	const char *text;
	enum cpu_quota quota;
};

static void test_cpu_max(void **state)
{
	static const struct quota_case cases[] = {
		{ "max 100000\n", CPU_QUOTA_NONE },
		{ "max 100000", CPU_QUOTA_NONE },
		{ "20000 100000\n", CPU_QUOTA_FINITE },
		{ "0 100000\n", CPU_QUOTA_FINITE },
		{ "99999999999999999999999999 100000\n", CPU_QUOTA_FINITE },
		{ "18446744073709551615 18446744073709551615\n", CPU_QUOTA_FINITE },
		{ "", CPU_QUOTA_INVALID },
		{ "\n", CPU_QUOTA_INVALID },
		{ "max", CPU_QUOTA_INVALID },
		{ "max\n", CPU_QUOTA_INVALID },
		{ "max \n", CPU_QUOTA_INVALID },
		{ "maximum 100000\n", CPU_QUOTA_INVALID },
		{ "-1 100000\n", CPU_QUOTA_INVALID },
		{ "20000\n", CPU_QUOTA_INVALID },
		{ "20000 100000 1\n", CPU_QUOTA_INVALID },
		{ "max 100000\n20000 100000\n", CPU_QUOTA_INVALID },
		{ " max 100000\n", CPU_QUOTA_INVALID },
		{ "\xff\xfe max 100000\n", CPU_QUOTA_INVALID },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (cpu_quota_of_max(cases[i].text) != cases[i].quota)
			fail_msg("case %zu: '%s'", i, cases[i].text);
}

static void test_cfs_quota(void **state)
{
	static const struct quota_case cases[] = {
		{ "-1\n", CPU_QUOTA_NONE },	{ "50000\n", CPU_QUOTA_FINITE },
		{ "0\n", CPU_QUOTA_FINITE },	{ "99999999999999999999\n", CPU_QUOTA_FINITE },
		{ "", CPU_QUOTA_INVALID },	{ "-2\n", CPU_QUOTA_INVALID },
		{ "-10\n", CPU_QUOTA_INVALID }, { "max\n", CPU_QUOTA_INVALID },
		{ "5 5\n", CPU_QUOTA_INVALID },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (cpu_quota_of_cfs(cases[i].text) != cases[i].quota)
			fail_msg("case %zu: '%s'", i, cases[i].text);
}

static void test_tasks(void **state)
{
	assert_false(cgroup_may_have_tasks("populated 0\nfrozen 0\n"));
	assert_false(cgroup_may_have_tasks("frozen 0\npopulated 0\n"));
	assert_true(cgroup_may_have_tasks("populated 1\nfrozen 0\n"));
	/* Only a complete line counts. */
	assert_true(cgroup_may_have_tasks(""));
	assert_true(cgroup_may_have_tasks("populated 0"));
	assert_true(cgroup_may_have_tasks("populated 01\n"));
	assert_true(cgroup_may_have_tasks("unpopulated 0\n"));
}

static void test_hierarchies(void **state)
{
	struct cgroup_hierarchies found;

	assert_int_equal(cgroup_hierarchies_parse("", &found), 0);
	assert_false(found.v1_cpu || found.v2);
	assert_int_equal(cgroup_hierarchies_parse("0::/system.slice\n", &found), 0);
	assert_true(!found.v1_cpu && found.v2);
	assert_int_equal(
		cgroup_hierarchies_parse("4:cpu,cpuacct:/a\n1:name=systemd:/a\n0::/a\n", &found),
		0);
	assert_true(found.v1_cpu && found.v2);
	assert_int_equal(cgroup_hierarchies_parse("3:cpuset:/cpu\n2:cpuacct:/:cpu:\n", &found), 0);
	assert_false(found.v1_cpu || found.v2);
}

static void test_invalid_hierarchies(void **state)
{
	static const char *const texts[] = { "0::/a", "x::/a\n", "0:/a\n", "\n", "0::/a\n1" };
	struct cgroup_hierarchies found = { .v2 = true };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(cgroup_hierarchies_parse(texts[i], &found), -EINVAL);
	assert_true(found.v2);
}

static void test_mounts(void **state)
{
	struct cgroup_mount mount;

	assert_int_equal(cgroup_mount_parse("33 24 0:28 / /sys/fs/cgroup rw,nosuid shared:9 "
					    "master:2 - cgroup2 cgroup2 rw,nsdelegate\n",
					    &mount),
			 0);
	assert_true(!mount.v1_cpu && mount.is_whole);
	assert_string_equal(mount.path, "/sys/fs/cgroup");
	assert_int_equal(mount.major, 0);
	assert_int_equal(mount.minor, 28);
	assert_int_equal(cgroup_mount_parse("35 24 0:4294967295 /../.. /mnt/a\\040b\\134 rw - "
					    "cgroup cgroup rw,cpu,cpuacct\n",
					    &mount),
			 0);
	assert_true(mount.v1_cpu && !mount.is_whole);
	assert_string_equal(mount.path, "/mnt/a b\\");
	assert_int_equal(mount.minor, 4294967295U);
	assert_int_equal(
		cgroup_mount_parse("35 24 0:30 / /c rw - cgroup cgroup rw,cpuset\n", &mount),
		-ENOENT);
	assert_int_equal(cgroup_mount_parse("21 1 8:1 / / rw - ext4 /dev/sda1 rw\n", &mount),
			 -ENOENT);
}

static void test_invalid_mounts(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"33 24 0:28 / /a rw\n",
		"33 24 0:28 / /a rw shared:9\n",
		"33 24 0:28 / /a rw -\n",
		"33 24 0:28 / /a rw - cgroup2\n",
		"33 24 0:28 / /a rw - cgroup2 cgroup2\n",
		"33 24 028 / /a rw - cgroup2 cgroup2 rw\n",
		"33 24 0:4294967296 / /a rw - cgroup2 cgroup2 rw\n",
		"33 24 0:28 / /a rw cgroup2 cgroup2 rw\n",
		"33 24 0:28 / a rw - cgroup2 cgroup2 rw\n",
		"33 24 0:28 / /a\\000b rw - cgroup2 cgroup2 rw\n",
		"33 24 0:28 / \\400 rw - cgroup2 cgroup2 rw\n",
	};
	char line[2 * CGROUP_MOUNT_PATH_LEN];
	struct cgroup_mount mount;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (cgroup_mount_parse(lines[i], &mount) != -EINVAL)
			fail_msg("case %zu: '%s'", i, lines[i]);
	snprintf(line, sizeof(line), "33 24 0:28 / /%0255d rw - cgroup2 cgroup2 rw\n", 0);
	assert_int_equal(cgroup_mount_parse(line, &mount), -EINVAL);
}

static void test_labels(void **state)
{
	assert_string_equal(cpu_limit_label(CPU_LIMIT_CPU_MAX), "cpu_max");
	assert_string_equal(cpu_limit_label(CPU_LIMIT_NR), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_max),
		cmocka_unit_test(test_cfs_quota),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_hierarchies),
		cmocka_unit_test(test_invalid_hierarchies),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_invalid_mounts),
		cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
