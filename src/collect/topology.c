/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "collect/topology.h"
#include "core/places.h"

#define MAX_CACHE_INDEX 8
#define CPU_PATH	"%s/devices/system/cpu/cpu%u/%s"
#define LIST_BYTES	256 /* of a list of CPUs; a longer list is not that of one core */

/* The last-level cache of a machine whose caches are all known. */
#define LEVEL_LAST 3

/* Two CPUs share a last-level cache when this is equal. */
struct cache_id {
	s32 first_cpu; /* of the CPUs that share the cache; -1 when only the package is known */
	s32 package;
	u32 node; /* 0 when the cache is known */
};

/* The first number in a file of a CPU, such as "3" or "0-7,16-23"; -1 if it has no number. */
static int read_number(const char *sysfs, u32 cpu, const char *file)
{
	char path[PATH_MAX];
	uint64_t value;

	snprintf(path, sizeof(path), CPU_PATH, sysfs, cpu, file);
	return file_read_number(path, &value) < 0 || value > INT_MAX ? -1 : (int)value;
}

/* Whether a cache serves one core only: its list has the CPUs of the core, and no other. */
static bool is_private(const char *sysfs, u32 cpu, const char *shared_list)
{
	char path[PATH_MAX], shared[LIST_BYTES], core[LIST_BYTES];

	snprintf(path, sizeof(path), CPU_PATH, sysfs, cpu, shared_list);
	if (file_read_text(path, shared, sizeof(shared)) < 0)
		return false;
	snprintf(path, sizeof(path), CPU_PATH, sysfs, cpu, "topology/core_cpus_list");
	return file_read_text(path, core, sizeof(core)) > 0 && !strcmp(core, shared);
}

/*
 * The CPUs of a package and of a node share a cache when none is described. Firmware of arm64
 * often describes the private caches of a core only, and not the cache of the interconnect.
 */
static struct cache_id cache_of(const char *sysfs, u32 cpu, u32 node)
{
	struct cache_id id = {
		.first_cpu = -1,
		.package = read_number(sysfs, cpu, "topology/physical_package_id"),
		.node = node,
	};
	int highest = -1;
	char shared[64];

	for (int i = 0; i < MAX_CACHE_INDEX; i++) {
		char file[64];
		int level;

		snprintf(file, sizeof(file), "cache/index%d/level", i);
		level = read_number(sysfs, cpu, file);
		if (level <= highest)
			continue;
		highest = level;
		snprintf(shared, sizeof(shared), "cache/index%d/shared_cpu_list", i);
	}
	if (highest < 0 || (highest < LEVEL_LAST && is_private(sysfs, cpu, shared)))
		return id;
	id.first_cpu = read_number(sysfs, cpu, shared);
	if (id.first_cpu >= 0)
		id.node = 0;
	return id;
}

/* The node number plus one, from a link in the directory of the CPU; 0 when there is no link. */
static u8 node_of(const char *sysfs, u32 cpu)
{
	char path[PATH_MAX];
	unsigned int node = 0;
	struct dirent *entry;
	u8 found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u", sysfs, cpu);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "node%u", &node) == 1 && node < UCHAR_MAX)
			found = (u8)(node + 1);
	if (dir)
		closedir(dir);
	return found;
}

static u32 nodes_with_cpus(const struct topology *topology)
{
	bool seen[UCHAR_MAX + 1] = { true };
	u32 nr = 0;

	for (u32 cpu = 0; cpu < topology->nr_cpus; cpu++) {
		nr += !seen[topology->cpu_node[cpu]];
		seen[topology->cpu_node[cpu]] = true;
	}
	return nr ? nr : 1;
}

/* CPU 0 often cannot go offline and then has no file "online". */
static bool is_online(const char *sysfs, u32 cpu)
{
	int online = read_number(sysfs, cpu, "online");

	return online == 1 || (online < 0 && read_number(sysfs, cpu, "topology/core_id") >= 0);
}

int topology_read(const char *sysfs, u32 nr_cpus, struct topology *ret)
{
	struct cache_id seen[MAX_LLCS];
	struct topology topology = { .nr_cpus = nr_cpus };

	if (nr_cpus > MAX_CPUS)
		return -E2BIG;
	for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
		struct cache_id id;
		u32 llc;

		topology.cpu_llc[cpu] = LLC_UNKNOWN;
		if (cpu >= nr_cpus || !is_online(sysfs, cpu))
			continue;
		topology.cpu_node[cpu] = node_of(sysfs, cpu);
		id = cache_of(sysfs, cpu, topology.cpu_node[cpu]);
		for (llc = 0; llc < topology.nr_llcs; llc++)
			if (!memcmp(&seen[llc], &id, sizeof(id)))
				break;
		if (llc == MAX_LLCS)
			return -E2BIG;
		if (llc == topology.nr_llcs)
			seen[topology.nr_llcs++] = id;
		topology.cpu_llc[cpu] = llc;
	}
	if (!topology.nr_llcs)
		return -ENODATA;
	topology.nr_nodes = nodes_with_cpus(&topology);
	topology_split(&topology);
	topology_place(&topology);
	*ret = topology;
	return 0;
}

u64 topology_version(const char *sysfs)
{
	char path[PATH_MAX];
	uint64_t nr_changes = 0;

	snprintf(path, sizeof(path), "%s/kernel/sched_ext/hotplug_seq", sysfs);
	file_read_number(path, &nr_changes);
	/* The counter and the number of CPUs may change by one in opposite directions. */
	return nr_changes * MAX_CPUS * 2 + (u64)sysconf(_SC_NPROCESSORS_ONLN);
}
