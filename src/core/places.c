/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/places.h"

/*
 * Orders the CPUs by a number of each one. Computes the place and the size of each group of CPUs
 * with the same number, and returns how many CPUs are in the order. CPUs whose LLC is not known
 * are left out.
 */
static u32 order_cpus(const struct topology *topology,
		      u32 (*number_of)(const struct topology *topology, u32 cpu), u32 nr_numbers,
		      u16 *cpus, u16 *places, u16 *sizes)
{
	u32 nr = 0;

	for (u32 number = 0; number < nr_numbers; number++) {
		places[number] = (u16)nr;
		for (u32 cpu = 0; cpu < topology->nr_cpus; cpu++)
			if (topology->cpu_llc[cpu] < topology->nr_llcs &&
			    number_of(topology, cpu) == number)
				cpus[nr++] = (u16)cpu;
		sizes[number] = (u16)(nr - places[number]);
	}
	return nr;
}

/*
 * The CPUs of a cache are dealt out to its shards in turns. The hardware threads of a core are
 * numbered n and n + cores, so they usually get the same shard.
 */
void topology_split(struct topology *topology)
{
	u32 sizes[MAX_LLCS] = {}, first[MAX_LLCS + 1] = {}, nr_seen[MAX_LLCS] = {}, nr = 0;

	for (u32 cpu = 0; cpu < topology->nr_cpus; cpu++)
		if (topology->cpu_llc[cpu] < topology->nr_llcs)
			sizes[topology->cpu_llc[cpu]]++;
	for (u32 llc = 0; llc < topology->nr_llcs; llc++) {
		nr += (sizes[llc] + SHARD_MAX - 1) / SHARD_MAX;
		first[llc + 1] = nr;
	}
	if (nr > MAX_LLCS)
		return;
	for (u32 cpu = 0; cpu < topology->nr_cpus; cpu++) {
		u32 llc = topology->cpu_llc[cpu], nr_shards;

		if (llc >= topology->nr_llcs)
			continue;
		nr_shards = first[llc + 1] - first[llc];
		topology->cpu_llc[cpu] = (u16)(first[llc] + nr_seen[llc]++ % nr_shards);
	}
	topology->nr_llcs = nr;
}

static u32 llc_of(const struct topology *topology, u32 cpu)
{
	return topology->cpu_llc[cpu];
}

static u32 node_of(const struct topology *topology, u32 cpu)
{
	return topology->cpu_node[cpu];
}

void topology_place(struct topology *topology)
{
	topology->nr_placed = order_cpus(topology, llc_of, topology->nr_llcs, topology->cpus,
					 topology->llc_place, topology->llc_size);
	for (u32 place = 0; place < topology->nr_placed; place++)
		topology->cpu_place[topology->cpus[place]] = (u16)place;
	order_cpus(topology, node_of, MAX_NODES, topology->node_cpus, topology->node_place,
		   topology->node_size);
}
