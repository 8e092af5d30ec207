/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for CPU limits in directories with the layout of cgroups, which a tenant may control. */
#include "collect/tree.h"

#include <errno.h>
#include <sys/sysmacros.h>
#include "base/macros.h"
#include "collect/cpu_limits.h"

#define CGROUP "sys/fs/cgroup"

static struct cpu_limits_config config;

static void set_namespace(const char *name)
{
	const char *path = tree_path("proc/self/ns/cgroup");

	unlink(path);
	assert_int_equal(symlink(name, path), 0);
}

/* The files of a machine with version 2 only. */
static void make_machine(void)
{
	struct stat st;
	char text[256];

	tree_write(tree_path("proc/self/cgroup"), "0::/system.slice/zerneld.service\n");
	tree_make_parents((char *)tree_path(CGROUP "/x"));
	assert_int_equal(stat(tree_path(CGROUP), &st), 0);
	snprintf(text, sizeof(text),
		 "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		 "33 21 %u:%u / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
		 major(st.st_dev), minor(st.st_dev));
	tree_write(tree_path("proc/self/mountinfo"), text);
	set_namespace("cgroup:[4026531835]");
}

/* The files of a machine with the controller cpu in version 1. */
static void make_old_machine(void)
{
	struct stat st;
	char text[256];

	make_machine();
	tree_write(tree_path("proc/self/cgroup"), "4:cpu,cpuacct:/a\n1:name=systemd:/\n0::/a\n");
	tree_write(tree_path("v1/cpu.cfs_quota_us"), "-1\n");
	assert_int_equal(stat(tree_path(CGROUP), &st), 0);
	snprintf(text, sizeof(text),
		 "33 21 %1$u:%2$u / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		 "34 21 %1$u:%2$u / /v1 rw - cgroup cgroup rw,cpu,cpuacct\n",
		 major(st.st_dev), minor(st.st_dev));
	tree_write(tree_path("proc/self/mountinfo"), text);
}

static void make_cgroup(const char *name, const char *max, bool is_populated)
{
	tree_write(tree_path(CGROUP "/%s/cpu.max", name), max);
	tree_write(tree_path(CGROUP "/%s/cgroup.events", name),
		   is_populated ? "populated 1\nfrozen 0\n" : "populated 0\nfrozen 0\n");
}

static int setup(void **state)
{
	int err = tree_setup(state);

	config = (struct cpu_limits_config){ .root = tree_root,
					     .nr_cgroups_max = CPU_LIMITS_CGROUPS_MAX };
	make_machine();
	return err;
}

static struct cpu_limits scan(void)
{
	CLEANUP(cpu_limits_scan_free_cleanup) struct cpu_limits_scan *scan = NULL;
	struct cpu_limits found;
	u32 nr_steps = 0;

	assert_int_equal(cpu_limits_scan_new(&config, &scan), 0);
	while (!cpu_limits_scan_step(scan, 1, &found))
		assert_true(++nr_steps <= config.nr_cgroups_max + 1);
	return found;
}

static void assert_limit(enum cpu_limit limit, const char *where)
{
	struct cpu_limits found = scan();

	assert_string_equal(cpu_limit_label(found.limit), cpu_limit_label(limit));
	assert_string_equal(found.where, where);
	assert_int_equal(found.nr_skipped > 0, limit == CPU_LIMIT_UNVERIFIED);
}

static void test_no_limit(void **state)
{
	make_cgroup("a", "max 100000\n", true);
	make_cgroup("a/b", "max 100000\n", true);
	make_cgroup("c", "max 100000\n", true);
	assert_limit(CPU_LIMIT_NONE, "");
	assert_int_equal(scan().nr_examined, 4);
}

static void test_limit(void **state)
{
	make_cgroup("a", "20000 100000\n", true);
	assert_limit(CPU_LIMIT_CPU_MAX, "/a");
	make_cgroup("a", "max 100000\n", true);
	assert_limit(CPU_LIMIT_NONE, "");
}

static void test_nested_limit(void **state)
{
	make_cgroup("a", "max 100000\n", true);
	make_cgroup("a/b", "max 100000\n", true);
	make_cgroup("a/b/c", "max 100000\n", true);
	make_cgroup("a/b/c/d", "1000 100000\n", true);
	make_cgroup("a/b/c/d/e", "max 100000\n", true);
	assert_limit(CPU_LIMIT_CPU_MAX, "/a/b/c/d");
}

static void test_huge_limit_is_finite(void **state)
{
	make_cgroup("a", "99999999999999999999999999 100000\n", true);
	assert_limit(CPU_LIMIT_CPU_MAX, "/a");
}

static void test_a_limit_without_tasks_does_not_count(void **state)
{
	make_cgroup("a", "20000 100000\n", false);
	make_cgroup("a/b", "10000 100000\n", false);
	assert_limit(CPU_LIMIT_NONE, "");
	make_cgroup("a", "20000 100000\n", true);
	assert_limit(CPU_LIMIT_CPU_MAX, "/a");
}

static void test_a_limit_with_unknown_tasks_counts(void **state)
{
	make_cgroup("a", "20000 100000\n", true);
	tree_write(tree_path(CGROUP "/a/cgroup.events"), "garbage");
	assert_limit(CPU_LIMIT_CPU_MAX, "/a");
}

/* Without the file, the controller is disabled for the cgroup and for all cgroups below. */
static void test_disabled_controllers_end_the_descent(void **state)
{
	tree_write(tree_path(CGROUP "/a/cgroup.events"), "populated 1\n");
	make_cgroup("a/b", "20000 100000\n", true);
	assert_limit(CPU_LIMIT_NONE, "");
	assert_int_equal(scan().nr_examined, 2);
}

static void test_garbage_is_not_verified(void **state)
{
	static const char zeros[] = "max 100000\n\0\0\0";

	make_cgroup("a", "\xff\x01garbage\n", true);
	assert_limit(CPU_LIMIT_UNVERIFIED, "/a");
	tree_write_bytes(tree_path(CGROUP "/a/cpu.max"), zeros, sizeof(zeros));
	assert_limit(CPU_LIMIT_UNVERIFIED, "/a");
	/* A limit is a better answer than a cgroup that is not understood. */
	make_cgroup("a/b", "20000 100000\n", true);
	assert_string_equal(cpu_limit_label(scan().limit), "cpu_max");
}

static void test_files_that_could_block_are_not_read(void **state)
{
	make_cgroup("a", "max 100000\n", true);
	assert_int_equal(unlink(tree_path(CGROUP "/a/cpu.max")), 0);
	assert_int_equal(mkfifo(tree_path(CGROUP "/a/cpu.max"), 0600), 0);
	assert_limit(CPU_LIMIT_UNVERIFIED, "/a");
	assert_int_equal(unlink(tree_path(CGROUP "/a/cpu.max")), 0);
	assert_int_equal(symlink("/proc/kmsg", tree_path(CGROUP "/a/cpu.max")), 0);
	assert_limit(CPU_LIMIT_UNVERIFIED, "/a");
}

static void test_links_are_not_followed(void **state)
{
	make_cgroup("a", "max 100000\n", true);
	tree_write(tree_path("elsewhere/cpu.max"), "20000 100000\n");
	assert_int_equal(symlink("../../../../elsewhere", tree_path(CGROUP "/a/link")), 0);
	assert_int_equal(symlink("..", tree_path(CGROUP "/a/loop")), 0);
	assert_limit(CPU_LIMIT_NONE, "");
}

static void test_too_many_cgroups(void **state)
{
	char name[32];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "%02d", i);
		make_cgroup(name, "max 100000\n", true);
	}
	config.nr_cgroups_max = 51;
	assert_limit(CPU_LIMIT_NONE, "");
	config.nr_cgroups_max = 50;
	assert_limit(CPU_LIMIT_UNVERIFIED, "more than the maximum number of cgroups");
	assert_int_equal(scan().nr_examined, 50);
}

static void test_too_deep(void **state)
{
	char name[256] = "d";

	make_cgroup(name, "max 100000\n", true);
	for (u32 depth = 2; depth < CPU_LIMITS_DEPTH_MAX; depth++) {
		strcat(name, "/d");
		make_cgroup(name, "max 100000\n", true);
	}
	assert_limit(CPU_LIMIT_NONE, "");
	strcat(name, "/e");
	make_cgroup(name, "max 100000\n", true);
	assert_string_equal(cpu_limit_label(scan().limit), "unverified");
}

static void test_long_names_are_truncated(void **state)
{
	char name[256 + 2];

	snprintf(name, sizeof(name), "%0200d", 0);
	make_cgroup(name, "max 100000\n", true);
	snprintf(name + 200, sizeof(name) - 200, "/%050d", 0);
	make_cgroup(name, "max 100000\n", true);
	assert_limit(CPU_LIMIT_NONE, "");
	make_cgroup("b", "20000 100000\n", true);
	assert_limit(CPU_LIMIT_CPU_MAX, "/b");
}

/* A cgroup that is removed between two steps does not end the scan. */
static void test_removed_while_scanned(void **state)
{
	CLEANUP(cpu_limits_scan_free_cleanup) struct cpu_limits_scan *one = NULL;
	struct cpu_limits found;

	make_cgroup("a/b", "max 100000\n", true);
	make_cgroup("a", "max 100000\n", true);
	assert_int_equal(cpu_limits_scan_new(&config, &one), 0);
	assert_false(cpu_limits_scan_step(one, 2, &found));
	assert_int_equal(nftw(tree_path(CGROUP "/a"), tree_remove_one, 16, FTW_DEPTH | FTW_PHYS),
			 0);
	assert_true(cpu_limits_scan_step(one, 100, &found));
	assert_string_equal(cpu_limit_label(found.limit), "none");
}

static void test_honored_limits_are_not_searched(void **state)
{
	make_cgroup("a", "20000 100000\n", true);
	config.honors_cpu_max = true;
	assert_limit(CPU_LIMIT_NONE, "");
	assert_int_equal(scan().nr_examined, 0);
}

static void test_version_1(void **state)
{
	make_old_machine();
	config.honors_cpu_max = true;
	assert_limit(CPU_LIMIT_NONE, "");
	tree_write(tree_path("v1/a/cpu.cfs_quota_us"), "-1\n");
	tree_write(tree_path("v1/a/b/cpu.cfs_quota_us"), "50000\n");
	assert_limit(CPU_LIMIT_CGROUP_V1, "/a/b");
	tree_write(tree_path("v1/a/b/cpu.cfs_quota_us"), "-1\n");
	assert_limit(CPU_LIMIT_NONE, "");
	tree_write(tree_path("v1/cpu.cfs_quota_us"), "50000\n");
	assert_limit(CPU_LIMIT_CGROUP_V1, "/");
}

static void test_both_versions(void **state)
{
	make_old_machine();
	make_cgroup("a", "20000 100000\n", true);
	assert_limit(CPU_LIMIT_CPU_MAX, "/a");
	make_cgroup("a", "max 100000\n", true);
	assert_limit(CPU_LIMIT_NONE, "");
}

static void test_no_cgroups(void **state)
{
	tree_write(tree_path("proc/self/cgroup"), "");
	tree_write(tree_path("proc/self/mountinfo"), "");
	assert_limit(CPU_LIMIT_NONE, "");
}

static void test_what_is_not_visible_is_not_verified(void **state)
{
	static const char part[] = "33 21 0:28 /kubepods /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

	tree_write(tree_path("proc/self/mountinfo"), "");
	assert_limit(CPU_LIMIT_UNVERIFIED, "a hierarchy that is not mounted here");
	tree_write(tree_path("proc/self/mountinfo"), part);
	assert_limit(CPU_LIMIT_UNVERIFIED, "/sys/fs/cgroup");
	make_machine();
	assert_limit(CPU_LIMIT_NONE, "");
	set_namespace("cgroup:[4026532000]");
	assert_limit(CPU_LIMIT_UNVERIFIED, "cgroups outside of the cgroup namespace of zerneld");
	assert_int_equal(unlink(tree_path("proc/self/cgroup")), 0);
	assert_limit(CPU_LIMIT_UNVERIFIED, "/proc/self/cgroup");
}

/* A file system that is mounted on top hides the cgroups. */
static void test_hidden_mount(void **state)
{
	tree_write(tree_path("proc/self/mountinfo"),
		   "33 21 0:4000000000 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_limit(CPU_LIMIT_UNVERIFIED, "/sys/fs/cgroup");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_limit),
		TEST(test_limit),
		TEST(test_nested_limit),
		TEST(test_huge_limit_is_finite),
		TEST(test_a_limit_without_tasks_does_not_count),
		TEST(test_a_limit_with_unknown_tasks_counts),
		TEST(test_disabled_controllers_end_the_descent),
		TEST(test_garbage_is_not_verified),
		TEST(test_files_that_could_block_are_not_read),
		TEST(test_links_are_not_followed),
		TEST(test_too_many_cgroups),
		TEST(test_too_deep),
		TEST(test_long_names_are_truncated),
		TEST(test_removed_while_scanned),
		TEST(test_honored_limits_are_not_searched),
		TEST(test_version_1),
		TEST(test_both_versions),
		TEST(test_no_cgroups),
		TEST(test_what_is_not_visible_is_not_verified),
		TEST(test_hidden_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
