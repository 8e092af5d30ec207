/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/places.h"

/* CPU n belongs to LLC n modulo `nr_llcs`. The first half of the CPUs is on node 2. */
static struct topology machine(u32 nr_cpus, u32 nr_llcs)
{
	struct topology topology = { .nr_cpus = nr_cpus, .nr_llcs = nr_llcs };

	for (u32 cpu = 0; cpu < nr_cpus; cpu++) {
		topology.cpu_llc[cpu] = (u16)(cpu % nr_llcs);
		topology.cpu_node[cpu] = cpu < nr_cpus / 2 ? 2 : 1;
	}
	topology_place(&topology);
	return topology;
}

static struct search search_of(const struct topology *topology, u32 cpu, u32 random)
{
	u32 llc = topology->cpu_llc[cpu];

	return search_around(topology->llc_place[llc], topology->llc_size[llc],
			     topology->cpu_place[cpu], topology->nr_placed, random);
}

/* Fails if the search leaves the machine or looks at a CPU twice. */
static u32 nr_found(const struct topology *topology, const struct search *search)
{
	bool seen[MAX_CPUS] = {};

	for (u32 i = 0; i < search->nr; i++) {
		u32 place = search_place(search, i);

		assert_true(place < topology->nr_placed);
		assert_false(seen[place]);
		seen[place] = true;
	}
	return search->nr;
}

static void test_places_follow_the_caches(void **state)
{
	struct topology topology = machine(6, 2);
	static const u16 cpus[] = { 0, 2, 4, 1, 3, 5 };

	assert_int_equal(topology.nr_placed, 6);
	assert_memory_equal(topology.cpus, cpus, sizeof(cpus));
	assert_int_equal(topology.llc_place[1], 3);
	assert_int_equal(topology.llc_size[1], 3);
	assert_int_equal(topology.cpu_place[3], 4);
}

static void test_cpus_of_a_node(void **state)
{
	struct topology topology = machine(6, 2);
	static const u16 cpus[] = { 3, 4, 5, 0, 1, 2 };

	assert_memory_equal(topology.node_cpus, cpus, sizeof(cpus));
	assert_int_equal(topology.node_size[0], 0);
	assert_int_equal(topology.node_size[1], 3);
	assert_int_equal(topology.node_place[2], 3);
}

static void test_a_large_cache_is_split(void **state)
{
	static const u32 sizes[][3] = {
		{ 16, 1, 1 }, { 17, 1, 2 }, { 112, 1, 7 }, { 64, 4, 4 }, { 224, 2, 14 }
	};

	for (u32 i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct topology topology = machine(sizes[i][0], sizes[i][1]);
		u32 nr = sizes[i][0] / sizes[i][2];

		topology_split(&topology);
		topology_place(&topology);
		assert_int_equal(topology.nr_llcs, sizes[i][2]);
		assert_int_equal(topology.nr_placed, sizes[i][0]);
		for (u32 llc = 0; llc < topology.nr_llcs; llc++)
			assert_in_range(topology.llc_size[llc], nr, nr + 1);
	}
}

static void test_threads_of_a_core_stay_together(void **state)
{
	struct topology topology = machine(96, 1);

	topology_split(&topology);
	for (u32 cpu = 0; cpu < 48; cpu++)
		assert_int_equal(topology.cpu_llc[cpu], topology.cpu_llc[cpu + 48]);
}

static void test_a_cache_is_not_split_without_room(void **state)
{
	struct topology topology = machine(1000, 1);

	topology.nr_llcs = MAX_LLCS;
	for (u32 cpu = 0; cpu < MAX_LLCS; cpu++)
		topology.cpu_llc[cpu] = (u16)cpu;
	topology_split(&topology);
	assert_int_equal(topology.nr_llcs, MAX_LLCS);
	assert_int_equal(topology.cpu_llc[999], 0);
}

static void test_a_cpu_without_a_cache_has_no_place(void **state)
{
	struct topology topology = machine(4, 1);

	topology.cpu_llc[1] = LLC_UNKNOWN;
	topology_place(&topology);
	assert_int_equal(topology.nr_placed, 3);
	assert_int_equal(topology.llc_size[0], 3);
	assert_int_equal(topology.cpus[1], 2);
}

static void test_a_small_machine_is_searched_completely(void **state)
{
	for (u32 nr_cpus = 1; nr_cpus <= SEARCH_MAX; nr_cpus++) {
		for (u32 nr_llcs = 1; nr_llcs <= nr_cpus; nr_llcs++) {
			struct topology topology = machine(nr_cpus, nr_llcs);

			for (u32 random = 0; random < nr_cpus; random++) {
				struct search search = search_of(&topology, random, random);

				assert_int_equal(nr_found(&topology, &search), nr_cpus);
			}
		}
	}
}

static void test_a_search_is_bounded(void **state)
{
	static const u32 sizes[][2] = {
		{ 17, 1 }, { 64, 8 }, { 384, 32 }, { 128, 128 }, { 1000, 7 }
	};

	for (u32 i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct topology topology = machine(sizes[i][0], sizes[i][1]);

		for (u32 random = 0; random < 2 * sizes[i][0]; random++) {
			struct search search = search_of(&topology, random % sizes[i][0], random);

			assert_true(nr_found(&topology, &search) <= SEARCH_MAX);
			assert_true(search.nr >= SEARCH_NEAR);
		}
	}
}

static void test_the_own_cpu_comes_first(void **state)
{
	struct topology topology = machine(64, 4);
	struct search search = search_of(&topology, 13, 5);

	assert_int_equal(topology.cpus[search_place(&search, 0)], 13);
	for (u32 i = 0; i < search.nr; i++)
		assert_int_equal(topology.cpus[search_place(&search, i)] % 4 == 1, i < SEARCH_NEAR);
}

static void test_a_cpu_looks_at_few_caches(void **state)
{
	for (u32 all = 1; all <= MAX_LLCS; all++) {
		for (u32 random = 0; random < 2 * all; random++) {
			bool seen[MAX_LLCS] = {};

			assert_true(caches_nr(all) <= CACHES_MAX);
			assert_true(caches_nr(all) == all || all > CACHES_MAX);
			for (u32 i = 0; i < caches_nr(all); i++) {
				u32 cache = cache_at(random % all, i, all, random);

				assert_true(cache < all);
				assert_false(seen[cache]);
				seen[cache] = true;
			}
			assert_true(seen[random % all]);
		}
	}
}

static void test_each_place_of_a_mask_comes_first_for_a_search(void **state)
{
	u64 mask = 1ULL << 3 | 1ULL << 17 | 1ULL << 31;

	assert_int_equal(place_bit_from(0, 1), 0);
	for (u32 from = 0; from < 32; from++) {
		u32 first = from <= 3 ? 3 : from <= 17 ? 17 : 31;

		assert_int_equal(place_bit_from(mask, 1ULL << from), 1ULL << first);
		assert_int_equal(place_bit_from(1, 1ULL << from), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_follow_the_caches),
		cmocka_unit_test(test_cpus_of_a_node),
		cmocka_unit_test(test_a_large_cache_is_split),
		cmocka_unit_test(test_threads_of_a_core_stay_together),
		cmocka_unit_test(test_a_cache_is_not_split_without_room),
		cmocka_unit_test(test_a_cpu_without_a_cache_has_no_place),
		cmocka_unit_test(test_a_small_machine_is_searched_completely),
		cmocka_unit_test(test_a_search_is_bounded),
		cmocka_unit_test(test_the_own_cpu_comes_first),
		cmocka_unit_test(test_a_cpu_looks_at_few_caches),
		cmocka_unit_test(test_each_place_of_a_mask_comes_first_for_a_search),
	};

	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
