/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests read topologies from a directory with the layout of sysfs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ftw.h>
#include <cmocka.h>
#include "collect/topology.h"

static char sysfs[] = "/tmp/test_topology.XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[256], *slash;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", sysfs, name);
	for (slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void write_cpu_file(u32 cpu, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/%s", cpu, name);
	write_file(path, text);
}

static void add_cpu(u32 cpu, const char *package)
{
	write_cpu_file(cpu, "topology/core_id", "0\n");
	write_cpu_file(cpu, "topology/physical_package_id", package);
}

static void add_cache(u32 cpu, int index, const char *level, const char *shared)
{
	char name[64];

	snprintf(name, sizeof(name), "cache/index%d/level", index);
	write_cpu_file(cpu, name, level);
	snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", index);
	write_cpu_file(cpu, name, shared);
}

static int setup(void **state)
{
	strcpy(sysfs + strlen(sysfs) - 6, "XXXXXX");
	return mkdtemp(sysfs) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(sysfs, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void the_highest_cache_level_is_used(void **state)
{
	static const char *const l3[] = { "0-1\n", "0-1\n", "2-3\n", "2-3\n" };
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++) {
		char own[8];

		snprintf(own, sizeof(own), "%u\n", cpu);
		add_cpu(cpu, "0\n");
		add_cache(cpu, 0, "1\n", own);
		add_cache(cpu, 1, "3\n", l3[cpu]);
		add_cache(cpu, 2, "2\n", own);
	}
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_llcs, 2);
	assert_int_equal(topology.cpu_llc[0], topology.cpu_llc[1]);
	assert_int_equal(topology.cpu_llc[2], topology.cpu_llc[3]);
	assert_int_not_equal(topology.cpu_llc[0], topology.cpu_llc[2]);
	assert_int_equal(topology.cpu_llc[4], LLC_UNKNOWN);
}

static void without_caches_each_package_is_one_llc(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++)
		add_cpu(cpu, cpu < 2 ? "0\n" : "1\n");
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_llcs, 2);
	assert_int_equal(topology.cpu_llc[1], 0);
	assert_int_equal(topology.cpu_llc[2], 1);
}

/* A core with `threads` CPUs, the first of which is a multiple of `threads`, and caches of its own.
 */
static void add_private_core(u32 cpu, u32 threads)
{
	u32 first = cpu / threads * threads;
	char core[16];

	snprintf(core, sizeof(core), threads > 1 ? "%u-%u\n" : "%u\n", first, first + threads - 1);
	add_cpu(cpu, "0\n");
	write_cpu_file(cpu, "topology/core_cpus_list", core);
	add_cache(cpu, 0, "1\n", core);
	add_cache(cpu, 1, "1\n", core);
	add_cache(cpu, 2, "2\n", core);
}

/* A small arm64 guest: no cache directory, and a device tree without packages. */
static void arm64_without_cache_files_is_one_llc(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++)
		add_cpu(cpu, "-1\n");
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_llcs, 1);
}

/* As on Altra: the firmware does not describe the cache that all cores of the package share. */
static void private_caches_do_not_split_a_package(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 8; cpu++) {
		add_private_core(cpu, 1);
		write_cpu_file(cpu, "topology/cluster_cpus_list", cpu < 4 ? "0-3\n" : "4-7\n");
		write_cpu_file(cpu, "topology/physical_package_id", cpu < 4 ? "0\n" : "1\n");
	}
	assert_int_equal(topology_read(sysfs, 8, &topology), 0);
	assert_int_equal(topology.nr_llcs, 2);
	assert_int_equal(topology.cpu_llc[0], topology.cpu_llc[3]);
	assert_int_equal(topology.cpu_llc[4], topology.cpu_llc[7]);
}

static void threads_of_a_core_do_not_make_its_cache_shared(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 8; cpu++)
		add_private_core(cpu, 2);
	assert_int_equal(topology_read(sysfs, 8, &topology), 0);
	assert_int_equal(topology.nr_llcs, 1);
}

static void nodes_split_a_package_with_private_caches(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++) {
		add_private_core(cpu, 1);
		write_cpu_file(cpu, cpu < 2 ? "node0/cpulist" : "node1/cpulist", "\n");
	}
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_llcs, 2);
	assert_int_equal(topology.cpu_llc[1], 0);
	assert_int_equal(topology.cpu_llc[2], 1);
}

/* As in small arm64 machines: clusters of cores, each with its own L2. */
static void an_l2_that_cores_share_is_the_llc(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++) {
		add_private_core(cpu, 1);
		add_cache(cpu, 2, "2\n", cpu < 2 ? "0-1\n" : "2-3\n");
	}
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_llcs, 2);
	assert_int_equal(topology.cpu_llc[0], topology.cpu_llc[1]);
}

/* As on Grace: two packages, each with private L2 caches and one L3. */
static void an_l3_of_a_package_is_the_llc(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 144; cpu++) {
		add_private_core(cpu, 1);
		write_cpu_file(cpu, "topology/physical_package_id", cpu < 72 ? "0\n" : "1\n");
		add_cache(cpu, 3, "3\n", cpu < 72 ? "0-71\n" : "72-143\n");
	}
	assert_int_equal(topology_read(sysfs, 144, &topology), 0);
	/* Each L3 has 5 shards. */
	assert_int_equal(topology.nr_llcs, 10);
	for (u32 cpu = 0; cpu < 144; cpu++)
		assert_int_equal(topology.cpu_llc[cpu] / 5, cpu / 72);
}

/* As in servers with 56 cores in each package: the second threads of all cores have the higher
 * numbers. */
static void an_l3_of_112_cpus_has_shards_of_whole_cores(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 224; cpu++) {
		u32 core = cpu % 112, package = core / 56;
		char threads[16];

		add_cpu(cpu, package ? "1\n" : "0\n");
		snprintf(threads, sizeof(threads), "%u,%u\n", core, core + 112);
		write_cpu_file(cpu, "topology/core_cpus_list", threads);
		add_cache(cpu, 2, "2\n", threads);
		add_cache(cpu, 3, "3\n", package ? "56-111,168-223\n" : "0-55,112-167\n");
		write_cpu_file(cpu, package ? "node1/cpulist" : "node0/cpulist", "\n");
	}
	assert_int_equal(topology_read(sysfs, 224, &topology), 0);
	assert_int_equal(topology.nr_llcs, 14);
	assert_int_equal(topology.nr_nodes, 2);
	for (u32 cpu = 0; cpu < 224; cpu++) {
		assert_int_equal(topology.cpu_llc[cpu] / 7, cpu % 112 / 56);
		assert_int_equal(topology.cpu_llc[cpu], topology.cpu_llc[cpu % 112]);
	}
}

/* As in some x86-64 processors, which have fast cores with an L3 each. */
static void an_l3_of_one_core_is_an_llc(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++) {
		add_private_core(cpu, 2);
		add_cache(cpu, 3, "3\n", cpu < 2 ? "0-1\n" : "2-3\n");
	}
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_llcs, 2);
	assert_int_equal(topology.cpu_llc[0], topology.cpu_llc[1]);
}

static void an_offline_cpu_is_unknown(void **state)
{
	struct topology topology;

	add_cpu(0, "0\n");
	add_cpu(1, "0\n");
	write_cpu_file(1, "online", "0\n");
	write_cpu_file(2, "online", "0\n");
	assert_int_equal(topology_read(sysfs, 3, &topology), 0);
	assert_int_equal(topology.nr_llcs, 1);
	assert_int_equal(topology.cpu_llc[0], 0);
	assert_int_equal(topology.cpu_llc[1], LLC_UNKNOWN);
	assert_int_equal(topology.cpu_llc[2], LLC_UNKNOWN);
}

static void only_nodes_with_cpus_are_counted(void **state)
{
	struct topology topology;

	for (u32 cpu = 0; cpu < 4; cpu++) {
		add_cpu(cpu, "0\n");
		write_cpu_file(cpu, cpu < 2 ? "node0/cpulist" : "node2/cpulist", "\n");
	}
	assert_int_equal(topology_read(sysfs, 4, &topology), 0);
	assert_int_equal(topology.nr_nodes, 2);
	assert_int_equal(topology.cpu_node[1], 1);
	assert_int_equal(topology.cpu_node[2], 3);
	assert_int_equal(topology.cpu_node[4], 0);
}

static void without_node_files_there_is_one_node(void **state)
{
	struct topology topology;

	add_cpu(0, "0\n");
	assert_int_equal(topology_read(sysfs, 1, &topology), 0);
	assert_int_equal(topology.nr_nodes, 1);
	assert_int_equal(topology.cpu_node[0], 0);
}

static void an_empty_tree_is_an_error(void **state)
{
	struct topology topology = { .nr_llcs = 7 };

	assert_int_equal(topology_read(sysfs, 2, &topology), -ENODATA);
	assert_int_equal(topology.nr_llcs, 7);
}

static void a_machine_that_is_too_large_is_an_error(void **state)
{
	struct topology topology;

	assert_int_equal(topology_read(sysfs, MAX_CPUS + 1, &topology), -E2BIG);
	for (u32 cpu = 0; cpu <= MAX_LLCS; cpu++) {
		char package[16];

		snprintf(package, sizeof(package), "%u\n", cpu);
		add_cpu(cpu, package);
	}
	assert_int_equal(topology_read(sysfs, MAX_LLCS + 1, &topology), -E2BIG);
	assert_int_equal(topology_read(sysfs, MAX_LLCS, &topology), 0);
	assert_int_equal(topology.nr_llcs, MAX_LLCS);
}

/* The counter of the kernel tells apart two states in which the same CPUs are online. */
static void each_hotplug_event_has_its_version(void **state)
{
	u64 none = topology_version(sysfs), first;

	assert_int_equal(topology_version(sysfs), none);
	write_file("kernel/sched_ext/hotplug_seq", "1\n");
	first = topology_version(sysfs);
	write_file("kernel/sched_ext/hotplug_seq", "2\n");
	assert_int_not_equal(first, none);
	assert_true(topology_version(sysfs) - first > MAX_CPUS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_highest_cache_level_is_used, setup, teardown),
		cmocka_unit_test_setup_teardown(without_caches_each_package_is_one_llc, setup,
						teardown),
		cmocka_unit_test_setup_teardown(arm64_without_cache_files_is_one_llc, setup,
						teardown),
		cmocka_unit_test_setup_teardown(private_caches_do_not_split_a_package, setup,
						teardown),
		cmocka_unit_test_setup_teardown(threads_of_a_core_do_not_make_its_cache_shared,
						setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_split_a_package_with_private_caches, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_l2_that_cores_share_is_the_llc, setup, teardown),
		cmocka_unit_test_setup_teardown(an_l3_of_a_package_is_the_llc, setup, teardown),
		cmocka_unit_test_setup_teardown(an_l3_of_112_cpus_has_shards_of_whole_cores, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_l3_of_one_core_is_an_llc, setup, teardown),
		cmocka_unit_test_setup_teardown(an_offline_cpu_is_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(only_nodes_with_cpus_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(without_node_files_there_is_one_node, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_empty_tree_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(a_machine_that_is_too_large_is_an_error, setup,
						teardown),
		cmocka_unit_test_setup_teardown(each_hotplug_event_has_its_version, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
