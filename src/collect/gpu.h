/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the devices themselves say: how busy they are, whose memory is on them,
 * where they are. Every backend is one struct gpu_source_ops. Absent is not zero:
 * a field counts only where its bit is in `valid`.
 */
#include <stddef.h>
#include <sys/types.h>
#include "abi/types.h"
#include "base/macros.h"

#define GPU_MAX_DEVICES	  64
#define GPU_MAX_PROCESSES 512
#define GPU_TEXT_LEN	  96
#define GPU_ADDRESS_LEN	  32

enum gpu_field {
	GPU_HAS_NAME = 1 << 0,
	GPU_HAS_UUID = 1 << 1,
	GPU_HAS_PCI_ADDRESS = 1 << 2,
	GPU_HAS_NUMA_NODE = 1 << 3,
	GPU_HAS_UTILISATION = 1 << 4,
	GPU_HAS_MEMORY_USED = 1 << 5,
	GPU_HAS_MEMORY_TOTAL = 1 << 6,
	GPU_HAS_ENERGY = 1 << 7,
	GPU_HAS_ACTIVE = 1 << 8,
};

/* What does not change while a device is there, so it stays known when it stalls. */
#define GPU_IDENTITY (GPU_HAS_NAME | GPU_HAS_UUID | GPU_HAS_PCI_ADDRESS | GPU_HAS_NUMA_NODE)

struct gpu_sample {
	u32 valid;	 /* of enum gpu_field */
	u32 index;	 /* the same device keeps it as long as struct gpu lives */
	s32 numa_node;	 /* -1 when none is known */
	u32 utilisation; /* per cent */
	u64 memory_used_bytes;
	u64 memory_total_bytes;
	u64 energy_mj;			   /* since the driver was loaded */
	u64 active_ns;			   /* its multiprocessors worked, since it is watched */
	u64 active_at_ns;		   /* when that was so, in CLOCK_MONOTONIC */
	char pci_address[GPU_ADDRESS_LEN]; /* as sysfs spells it: 0000:3b:00.0 */
	char name[GPU_TEXT_LEN];
	char uuid[GPU_TEXT_LEN];
};

struct gpu_process_sample {
	u32 valid; /* GPU_HAS_UTILISATION, GPU_HAS_MEMORY_USED */
	u32 pid;
	u32 gpu; /* index of the device */
	u32 utilisation;
	u64 memory_used_bytes;
};

struct gpu_samples {
	u32 nr_devices;
	u32 nr_processes;
	u32 nr_dropped; /* devices, processes or descriptors there was no room for */
	u32 nr_stalled; /* sources that did not answer in time */
	struct gpu_sample devices[GPU_MAX_DEVICES];
	struct gpu_process_sample processes[GPU_MAX_PROCESSES];
};

struct gpu_config {
	const char *nvml_library;
	const char *procfs;
	const char *sysfs;
	u64 deadline_ns; /* how long one sample may keep the caller */
};

extern const struct gpu_config gpu_config_system;

struct gpu_source_ops {
	const char *name;
	/* -ENODEV when there is nothing of the kind here, which is no failure. */
	int (*open)(const struct gpu_config *config, void **ret);
	/*
	 * Appends; `index` and `gpu` count the source's own devices from 0. `pids`
	 * are for sources that cannot find out by themselves who uses a device.
	 */
	int (*sample)(void *source, const pid_t *pids, size_t nr_pids, u64 now_ns,
		      struct gpu_samples *samples);
	void (*close)(void *source);
};

extern const struct gpu_source_ops gpu_nvml_ops;
extern const struct gpu_source_ops gpu_fdinfo_ops;

struct gpu;

/* Opens every backend that exists here; a machine without any is not an error. */
int gpu_new(const struct gpu_config *config, struct gpu **ret);
struct gpu *gpu_free(struct gpu *gpu);
DEFINE_CLEANUP(struct gpu, gpu_free);

/* `now_ns` is monotonic. Two sources that see one PCI address yield one device. */
int gpu_read(struct gpu *gpu, const pid_t *pids, size_t nr_pids, u64 now_ns,
	     struct gpu_samples *ret);

/* For the backends: room for one more, or NULL with the drop counted. */
struct gpu_sample *gpu_samples_add_device(struct gpu_samples *samples);
struct gpu_process_sample *gpu_samples_add_process(struct gpu_samples *samples);
/* Sets address and, from sysfs, the NUMA node. */
void gpu_sample_set_address(struct gpu_sample *sample, const char *sysfs, const char *address);
