/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DUPLICATE (~0U)

/* A source that was started again can number its GPUs differently, so the address decides. */
static bool is_known(const struct gpu_known *known, enum gpu_source source, u32 index,
		     const char *address)
{
	if (*address && *known->address)
		return strcmp(known->address, address) == 0;
	return known->source == source && known->source_index == index;
}

/* The index of a GPU, or -ENOSPC. */
static int known_index(struct gpu_merge *merge, enum gpu_source source,
		       const struct gpu_sample *sample)
{
	const char *address = sample->valid & GPU_HAS_PCI_ADDRESS ? sample->pci_address : "";
	struct gpu_known *known;
	u32 i;

	for (i = 0; i < merge->nr_known; i++)
		if (is_known(&merge->known[i], source, sample->index, address))
			return (int)i;
	if (i == GPU_MAX_DEVICES)
		return -ENOSPC;
	known = &merge->known[merge->nr_known++];
	*known = (struct gpu_known){ .source = source, .source_index = sample->index };
	snprintf(known->address, sizeof(known->address), "%s", address);
	return (int)i;
}

static bool has_device(const struct gpu_samples *samples, u32 index)
{
	for (u32 i = 0; i < samples->nr_devices; i++)
		if (samples->devices[i].index == index)
			return true;
	return false;
}

void gpu_merge_add(struct gpu_merge *merge, enum gpu_source source, const struct gpu_samples *from,
		   struct gpu_samples *to)
{
	u32 index_of[GPU_MAX_DEVICES];

	to->nr_dropped += from->nr_dropped;
	to->nr_stalled += from->nr_stalled;
	to->nr_unlisted += from->nr_unlisted;
	for (u32 i = 0; i < from->nr_devices; i++) {
		int index = known_index(merge, source, &from->devices[i]);
		struct gpu_sample *device;

		index_of[i] = DUPLICATE;
		if (index < 0)
			to->nr_dropped++;
		if (index < 0 || has_device(to, (u32)index))
			continue;
		device = gpu_samples_add_device(to);
		if (!device)
			continue;
		*device = from->devices[i];
		device->index = index_of[i] = (u32)index;
	}
	for (u32 i = 0; i < from->nr_slices; i++) {
		struct gpu_slice_sample *copy;

		if (index_of[from->slices[i].gpu] == DUPLICATE)
			continue;
		copy = gpu_samples_add_slice(to);
		if (!copy)
			continue;
		*copy = from->slices[i];
		copy->gpu = index_of[from->slices[i].gpu];
	}
	for (u32 i = 0; i < from->nr_processes; i++) {
		const struct gpu_process_sample *process = &from->processes[i];
		struct gpu_process_sample *copy;

		if (index_of[process->gpu] == DUPLICATE)
			continue;
		copy = gpu_samples_add_process(to);
		if (!copy) {
			to->nr_unlisted += process->is_listed;
			continue;
		}
		*copy = *process;
		copy->gpu = index_of[process->gpu];
	}
}
