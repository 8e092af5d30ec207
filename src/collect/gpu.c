/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/gpu.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/cleanup.h"
#include "base/file.h"

#define DUPLICATE (~0U)

/* When two sources know the same GPU, the first one is used: the vendor's own library. */
static const struct gpu_source_ops *const sources[] = {
	&gpu_nvml_ops,
	&gpu_fdinfo_ops,
};
#define NR_SOURCES ARRAY_SIZE(sources)

const struct gpu_config gpu_config_system = {
	.nvml_library = "libnvidia-ml.so.1",
	.procfs = "/proc",
	.sysfs = "/sys",
	.deadline_ns = NSEC_PER_SEC / 2,
};

/* A GPU that was seen once keeps its place in the table, which is its index. */
struct known {
	u32 source;
	u32 source_index;
	char address[GPU_ADDRESS_LEN]; /* empty when unknown */
};

struct gpu {
	void *opened[NR_SOURCES];
	u32 nr_known;
	struct known known[GPU_MAX_DEVICES];
	struct gpu_samples scratch; /* samples of one source */
};

int gpu_new(const struct gpu_config *config, struct gpu **ret)
{
	CLEANUP(gpu_free_cleanup) struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return -ENOMEM;
	for (size_t i = 0; i < NR_SOURCES; i++) {
		int err = sources[i]->open(config, &gpu->opened[i]);

		if (err < 0 && err != -ENODEV)
			return err;
	}
	*ret = TAKE_PTR(gpu);
	return 0;
}

struct gpu *gpu_free(struct gpu *gpu)
{
	if (!gpu)
		return NULL;
	for (size_t i = 0; i < NR_SOURCES; i++)
		if (gpu->opened[i])
			sources[i]->close(gpu->opened[i]);
	free(gpu);
	return NULL;
}

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
	*sample = (struct gpu_process_sample){};
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

/* The index of a GPU, or -ENOSPC. */
static int known_index(struct gpu *gpu, u32 source, const struct gpu_sample *sample)
{
	const char *address = sample->valid & GPU_HAS_PCI_ADDRESS ? sample->pci_address : "";
	struct known *known;
	u32 i;

	for (i = 0; i < gpu->nr_known; i++) {
		known = &gpu->known[i];
		if ((known->source == source && known->source_index == sample->index) ||
		    (address[0] && !strcmp(known->address, address)))
			return (int)i;
	}
	if (i == GPU_MAX_DEVICES)
		return -ENOSPC;
	known = &gpu->known[gpu->nr_known++];
	*known = (struct known){ .source = source, .source_index = sample->index };
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

/* Adds the samples of one source to the samples of the previous sources. */
static void merge(struct gpu *gpu, u32 source, struct gpu_samples *samples)
{
	const struct gpu_samples *from = &gpu->scratch;
	u32 index_of[GPU_MAX_DEVICES];

	samples->nr_dropped += from->nr_dropped;
	samples->nr_stalled += from->nr_stalled;
	for (u32 i = 0; i < from->nr_devices; i++) {
		int index = known_index(gpu, source, &from->devices[i]);
		struct gpu_sample *device;

		index_of[i] = DUPLICATE;
		if (index < 0)
			samples->nr_dropped++;
		if (index < 0 || has_device(samples, (u32)index))
			continue;
		device = gpu_samples_add_device(samples);
		if (!device)
			continue;
		*device = from->devices[i];
		device->index = index_of[i] = (u32)index;
	}
	for (u32 i = 0; i < from->nr_processes; i++) {
		const struct gpu_process_sample *process = &from->processes[i];
		struct gpu_process_sample *copy;

		if (index_of[process->gpu] == DUPLICATE)
			continue;
		copy = gpu_samples_add_process(samples);
		if (!copy)
			continue;
		*copy = *process;
		copy->gpu = index_of[process->gpu];
	}
}

static void samples_clear(struct gpu_samples *samples)
{
	samples->nr_devices = samples->nr_processes = 0;
	samples->nr_dropped = samples->nr_stalled = 0;
}

int gpu_read(struct gpu *gpu, const pid_t *pids, size_t nr_pids, u64 now_ns,
	     struct gpu_samples *ret)
{
	samples_clear(ret);
	for (u32 i = 0; i < NR_SOURCES; i++) {
		int err;

		if (!gpu->opened[i])
			continue;
		samples_clear(&gpu->scratch);
		err = sources[i]->sample(gpu->opened[i], pids, nr_pids, now_ns, &gpu->scratch);
		if (err < 0)
			return err;
		merge(gpu, i, ret);
	}
	return 0;
}
