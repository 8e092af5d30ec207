/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu_node.h"
#include <string.h>

_Static_assert(GPU_NODE_DEVICES >= GPU_MAX_DEVICES && GPU_NODE_SLICES >= GPU_MAX_SLICES,
	       "all samples fit");

static u64 file_bit(u32 number)
{
	return number < GPU_FILES_MAX ? 1ULL << number : 0;
}

static void add_device(struct gpu_node *node, const struct gpu_sample *sample)
{
	struct gpu_node_device *device = &node->devices[node->nr_devices++];

	device->gpu = sample->index;
	device->has_uuid =
		sample->valid & GPU_HAS_UUID && gpu_uuid_parse(sample->uuid, &device->uuid);
	device->has_pci =
		sample->valid & GPU_HAS_PCI_ADDRESS &&
		gpu_pci_parse(sample->pci_address, sizeof(sample->pci_address), &device->pci);
	if (sample->valid & GPU_HAS_NVIDIA_FILE)
		device->files[GPU_FILE_NVIDIA] = file_bit(sample->nvidia_file);
	/* The first file has the number 128: see gpu_devices.c. */
	if (sample->valid & GPU_HAS_RENDER_FILE && sample->render_file >= 128)
		device->files[GPU_FILE_RENDER] = file_bit(sample->render_file - 128);
}

void gpu_node_of(const struct gpu_samples *samples, struct gpu_node *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (u32 i = 0; i < samples->nr_devices; i++)
		add_device(ret, &samples->devices[i]);
	for (u32 i = 0; i < samples->nr_slices; i++) {
		const struct gpu_slice_sample *slice = &samples->slices[i];
		struct gpu_node_slice *to = &ret->slices[ret->nr_slices];

		if (!gpu_uuid_parse(slice->uuid, &to->uuid))
			continue;
		to->gpu = slice->gpu;
		to->gpu_instance = slice->gpu_instance;
		to->compute_instance = slice->compute_instance;
		ret->nr_slices++;
	}
}

void gpu_places_of(const struct gpu_samples *samples, u32 pid, u64 since_ns,
		   struct gpu_facts *facts)
{
	for (u32 i = 0; i < samples->nr_processes; i++) {
		const struct gpu_process_sample *process = &samples->processes[i];
		struct gpu_place place = { process->gpu, process->gpu_instance,
					   process->compute_instance };

		if (process->pid == pid && process->is_listed && process->at_ns >= since_ns)
			gpu_facts_add_place(facts, &place);
	}
	/* The process may be on a GPU whose list is missing, too. */
	if (samples->nr_unlisted && facts->nr_places)
		gpu_facts_lose_places(facts);
}
