/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints what the maps of the BPF programs need on machines with 2, 64 and 384 CPUs, and what a
 * launcher adds. Compares both with their bounds.
 *
 * The kernel tells the size of each map on this machine (memlock in fdinfo, from 6.4 on). On a
 * larger machine a map differs by what it has for each possible CPU, which follows from its type.
 *
 * The kernel does not tell the free entries that it keeps for each possible CPU of a map that
 * allocates its entries on use: it begins with a few, and keeps more on a CPU that often allocates
 * or frees (kernel/bpf/memalloc.c). The table has them in two further columns. An entry takes what
 * kmalloc() gives for its size.
 *
 * The test creates the maps and loads no program.
 */
#include "signals/native.h"

#include <stdlib.h>
#include <string.h>

#define KIB	     1024ULL
#define MACHINE_MAX  (32 * 1024 * KIB)
#define FREE_MAX     (24 * 1024 * KIB)
#define LAUNCHER_MAX (64 * KIB)

/* Sizes in the kernel. Releases differ by a few bytes. */
#define HASH_ENTRY    56  /* struct htab_elem, before the key, and the link of a free entry */
#define HASH_BUCKET   16  /* struct bucket, also of task storage */
#define STORAGE_ENTRY 80  /* struct bpf_local_storage_elem, before the value, and the link */
#define STORAGE_TASK  192 /* struct bpf_local_storage: once for each task with an entry */
#define FREE_LIST     192 /* struct bpf_mem_cache: one for each CPU */

static const u64 nr_cpus_of[] = { 2, 64, 384 };
#define NR_MACHINES ARRAY_SIZE(nr_cpus_of)
#define LARGEST	    (NR_MACHINES - 1)

struct map_memory {
	u64 bytes[NR_MACHINES];
	/* On the largest machine: free entries after the load, and at most. */
	u64 free_bytes, most_free_bytes;
	u64 entry_bytes; /* of an entry that is allocated on use */
};

/* Entries of a launcher that uses everything that is known of a launcher. */
static const struct {
	const char *map;
	u32 nr;
} of_launcher[] = {
	{ "threads", 1 },
	{ "processes", 1 },
	{ "collectives", 1 },
	{ "process_comms", 1 },
	{ "gpu_threads", 1 },
	{ "gpu_holders", 1 },
	{ "collective_mappings", 1 },
	{ "pythons", 1 },
	{ "sched_tasks", 1 },
	{ "consumers", 1 },
	{ "gpu_numbers", 1 },
	{ "hists", HIST_KIND_NR },
};

static u64 power_of_two(u64 least)
{
	u64 value = 1;

	while (value < least)
		value *= 2;
	return value;
}

static u64 kmalloc_bytes(u64 bytes)
{
	if (bytes > 64 && bytes <= 96)
		return 96;
	if (bytes > 128 && bytes <= 192)
		return 192;
	return power_of_two(bytes);
}

static u64 words(u64 bytes)
{
	return (bytes + 7) / 8 * 8;
}

/* Bytes of an entry that the map allocates on use; 0 if it allocates none. */
static u64 entry_bytes(const struct bpf_map *map)
{
	if (!(bpf_map__map_flags(map) & BPF_F_NO_PREALLOC))
		return 0;
	if (bpf_map__type(map) == BPF_MAP_TYPE_TASK_STORAGE)
		return STORAGE_ENTRY + words(bpf_map__value_size(map));
	return HASH_ENTRY + words(bpf_map__key_size(map)) + words(bpf_map__value_size(map));
}

static u64 nr_free(u64 entry)
{
	return entry <= 256 ? 4 : 1;
}

static u64 nr_free_at_most(u64 entry)
{
	u64 nr = entry <= 256 ? 96 : 96 * 256 / entry;

	return nr > 3 ? nr : 3;
}

/* What the kernel says of the map on this machine. */
static u64 told_bytes(const struct bpf_map *map)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "memlock: %llu", &bytes) != 1)
		;
	fclose(file);
	return bytes;
}

/* Keys and values of a full map, whatever it has. */
static u64 bytes_told_before_6_4(const struct bpf_map *map)
{
	return bpf_map__max_entries(map) * words(bpf_map__key_size(map) + bpf_map__value_size(map));
}

/* The part of it that depends on the number of possible CPUs. */
static u64 bytes_of_cpus(const struct bpf_map *map, u64 nr_cpus)
{
	u64 value = words(bpf_map__value_size(map));

	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_PERCPU_ARRAY: return nr_cpus * value * bpf_map__max_entries(map);
	case BPF_MAP_TYPE_TASK_STORAGE: return HASH_BUCKET * power_of_two(nr_cpus);
	default: return 0;
	}
}

static struct map_memory memory_of(const struct bpf_map *map)
{
	u64 base = told_bytes(map) - bytes_of_cpus(map, (u64)libbpf_num_possible_cpus());
	u64 entry = entry_bytes(map), nr_cpus = nr_cpus_of[LARGEST];
	struct map_memory memory = {};

	for (u32 i = 0; i < NR_MACHINES; i++)
		memory.bytes[i] = base + bytes_of_cpus(map, nr_cpus_of[i]);
	if (!entry)
		return memory;
	memory.entry_bytes = kmalloc_bytes(entry);
	memory.free_bytes = nr_cpus * (FREE_LIST + nr_free(entry) * memory.entry_bytes);
	memory.most_free_bytes =
		nr_cpus * (FREE_LIST + nr_free_at_most(entry) * memory.entry_bytes);
	return memory;
}

static void add(struct map_memory *total, const struct map_memory *memory)
{
	for (u32 i = 0; i < NR_MACHINES; i++)
		total->bytes[i] += memory->bytes[i];
	total->free_bytes += memory->free_bytes;
	total->most_free_bytes += memory->most_free_bytes;
}

static void print_row(const char *name, const struct map_memory *memory, u32 nr_entries)
{
	print_message("# | %-19s | %7u | %7llu | %7llu | %7llu | %7llu | %7llu | %7llu |\n", name,
		      nr_entries, memory->entry_bytes, memory->bytes[0] / KIB,
		      memory->bytes[1] / KIB, memory->bytes[2] / KIB, memory->free_bytes / KIB,
		      memory->most_free_bytes / KIB);
}

/* Creates all maps, but not the one that registers the scheduler. */
static struct zernel_bpf *create_maps(void)
{
	struct zernel_bpf *skel = zernel_bpf__open();
	struct bpf_program *prog;
	int err;

	assert_non_null(skel);
	bpf_object__for_each_program(prog, skel->obj)
		assert_int_equal(bpf_program__set_autoload(prog, false), 0);
	assert_int_equal(bpf_map__set_autocreate(skel->maps.zernel, false), 0);
	err = zernel_bpf__load(skel);
	if (err == -EPERM || err == -EACCES) {
		print_message("# skipped: cannot create maps: %s\n", strerror(-err));
		skip();
	}
	assert_int_equal(err, 0);
	if (told_bytes(skel->maps.memories) >= bytes_told_before_6_4(skel->maps.memories)) {
		print_message("# skipped: before Linux 6.4 the kernel does not tell the memory of "
			      "maps\n");
		skip();
	}
	return skel;
}

static void test_maps_fit_on_a_large_machine(void **state)
{
	struct zernel_bpf *skel = create_maps();
	struct map_memory total = {}, memory;
	const struct bpf_map *map;

	print_message("# | map                 | entries |   bytes |  2 CPUs | 64 CPUs |"
		      "     384 |    free | at most |\n");
	bpf_object__for_each_map(map, skel->obj) {
		if (bpf_map__fd(map) < 0)
			continue;
		/* Their size is that of a table for each CPU. */
		assert_int_not_equal(bpf_map__type(map), BPF_MAP_TYPE_PERCPU_HASH);
		assert_int_not_equal(bpf_map__type(map), BPF_MAP_TYPE_LRU_PERCPU_HASH);
		/* One that allocates its entries at its creation has some for each CPU, too. */
		assert_true(bpf_map__type(map) != BPF_MAP_TYPE_HASH || entry_bytes(map));
		memory = memory_of(map);
		print_row(bpf_map__name(map), &memory, bpf_map__max_entries(map));
		add(&total, &memory);
	}
	print_row("all, in KiB", &total, 0);
	assert_in_range(total.bytes[LARGEST], 1, MACHINE_MAX);
	assert_in_range(total.free_bytes, 1, FREE_MAX);
	zernel_bpf__destroy(skel);
}

static void test_a_launcher_adds_little(void **state)
{
	struct zernel_bpf *skel = create_maps();
	u64 bytes = STORAGE_TASK, thread = STORAGE_TASK;

	for (u32 i = 0; i < ARRAY_SIZE(of_launcher); i++) {
		const struct bpf_map *map =
			bpf_object__find_map_by_name(skel->obj, of_launcher[i].map);

		assert_non_null(map);
		bytes += of_launcher[i].nr * kmalloc_bytes(entry_bytes(map));
	}
	thread += kmalloc_bytes(entry_bytes(skel->maps.threads)) +
		  kmalloc_bytes(entry_bytes(skel->maps.sched_tasks));
	print_message(
		"# a launcher: %llu bytes; each communicator: %llu; each other thread: %llu\n",
		bytes, kmalloc_bytes(entry_bytes(skel->maps.sequences)), thread);
	assert_in_range(bytes, 1, LAUNCHER_MAX);
	zernel_bpf__destroy(skel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps_fit_on_a_large_machine),
		cmocka_unit_test(test_a_launcher_adds_little),
	};

	return cmocka_run_group_tests_name("map_memory", tests, NULL, NULL);
}
