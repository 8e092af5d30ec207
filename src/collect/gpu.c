/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu.h"

#include <limits.h>
#include <stdio.h>
#include "base/file.h"

const struct gpu_config gpu_config_system = {
	.nvml_library = "libnvidia-ml.so.1",
	.procfs = "/proc",
	.sysfs = "/sys",
};

struct gpu_sample *gpu_samples_add_device(struct gpu_samples *samples)
{
	struct gpu_sample *sample;

	if (samples->nr_devices == GPU_MAX_DEVICES) {
		samples->nr_dropped++;
		return NULL;
	}
	sample = &samples->devices[samples->nr_devices];
	*sample = (struct gpu_sample){ .index = samples->nr_devices++, .numa_node = -1 };
	return sample;
}

struct gpu_process_sample *gpu_samples_add_process(struct gpu_samples *samples)
{
	struct gpu_process_sample *sample;

	if (samples->nr_processes == GPU_MAX_PROCESSES) {
		samples->nr_dropped++;
		return NULL;
	}
	sample = &samples->processes[samples->nr_processes++];
	*sample = (struct gpu_process_sample){ .gpu_instance = GPU_NO_INSTANCE,
					       .compute_instance = GPU_NO_INSTANCE };
	return sample;
}

struct gpu_slice_sample *gpu_samples_add_slice(struct gpu_samples *samples)
{
	struct gpu_slice_sample *sample;

	if (samples->nr_slices == GPU_MAX_SLICES) {
		samples->nr_dropped++;
		return NULL;
	}
	sample = &samples->slices[samples->nr_slices++];
	*sample = (struct gpu_slice_sample){};
	return sample;
}

void gpu_sample_set_address(struct gpu_sample *sample, const char *sysfs, const char *address)
{
	char path[PATH_MAX];
	uint64_t node;

	snprintf(sample->pci_address, sizeof(sample->pci_address), "%s", address);
	sample->valid |= GPU_HAS_PCI_ADDRESS;
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sysfs, address);
	/* sysfs has -1 for no node, which file_read_number() does not accept. */
	if (file_read_number(path, &node) < 0 || node > INT_MAX)
		return;
	sample->numa_node = (s32)node;
	sample->valid |= GPU_HAS_NUMA_NODE;
}
