/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Samples from the GPU drivers: utilization, memory per process, location. Each source is a
 * struct gpu_source_ops, in a process of its own: the vendor's library in zernel-gpu, and DRM
 * descriptors of other users in zernel-discover. gpu_merge.h joins their samples. A field is set
 * only when its bit is in `valid`; a missing value is not zero.
 */
#include <stddef.h>
#include <sys/types.h>
#include "abi/signals.h"
#include "abi/types.h"
#include "base/macros.h"
#include "core/gpu_identity.h"

#define GPU_MAX_DEVICES	  64
#define GPU_MAX_PROCESSES 512
#define GPU_MAX_SLICES	  128
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
	GPU_HAS_BUSY_TIME = 1 << 9,
	GPU_HAS_NVIDIA_FILE = 1 << 10,
	GPU_HAS_RENDER_FILE = 1 << 11,
};

/* Fields that do not change while a GPU exists, so they stay valid when its driver stalls. */
#define GPU_IDENTITY                                                                               \
	(GPU_HAS_NAME | GPU_HAS_UUID | GPU_HAS_PCI_ADDRESS | GPU_HAS_NUMA_NODE |                   \
	 GPU_HAS_NVIDIA_FILE | GPU_HAS_RENDER_FILE)

/*
 * The time in which a GPU worked, by one of its counters. The sum has no gaps: where time was
 * not measured, it starts again, with a new `since_ns`. All times are in CLOCK_MONOTONIC.
 */
struct gpu_busy_time {
	u64 busy_ns;
	u64 since_ns;
	u64 at_ns;     /* known up to here */
	u64 period_ns; /* distance of the last two samples of the counter */
	u32 counter;   /* enum gpu_counter */
	u32 pad;
};

struct gpu_sample {
	u32 valid;	 /* bits of enum gpu_field */
	u32 index;	 /* a GPU keeps its index */
	s32 numa_node;	 /* -1 when unknown */
	u32 utilisation; /* per cent */
	u64 memory_used_bytes;
	u64 memory_total_bytes;
	u64 energy_mj;	  /* since the driver was loaded */
	u64 active_ns;	  /* time that its multiprocessors worked since the first sample */
	u64 active_at_ns; /* time of that value, in CLOCK_MONOTONIC */
	u32 nvidia_file;  /* the number of its file /dev/nvidiaN */
	u32 render_file;  /* the number of its file /dev/dri/renderDN */
	struct gpu_busy_time busy;
	char pci_address[GPU_ADDRESS_LEN]; /* in the format of sysfs: 0000:3b:00.0 */
	char name[GPU_TEXT_LEN];
	char uuid[GPU_TEXT_LEN];
};

/* A part of a GPU (MIG), with processes of its own. */
struct gpu_slice_sample {
	u32 gpu; /* index of the GPU */
	u32 gpu_instance;
	u32 compute_instance;
	u32 pad;
	char uuid[GPU_TEXT_LEN];
};

struct gpu_process_sample {
	u32 valid; /* GPU_HAS_UTILISATION, GPU_HAS_MEMORY_USED */
	u32 pid;
	u32 gpu;	      /* index of the GPU */
	u32 gpu_instance;     /* of the part (MIG); GPU_NO_INSTANCE: none, or unknown */
	u32 compute_instance; /* the same */
	u32 is_listed; /* the driver lists it: it computes there, and has not only opened it */
	u32 utilisation;
	u32 pad;
	u64 memory_used_bytes;
	u64 at_ns; /* the driver was asked after this time, in CLOCK_MONOTONIC */
};

struct gpu_samples {
	u32 nr_devices;
	u32 nr_processes;
	u32 nr_dropped; /* GPUs, processes or descriptors that did not fit */
	u32 nr_stalled; /* sources that do not answer */
	u32 nr_slices;
	u32 nr_unlisted; /* lists of processes that are missing or not complete */
	struct gpu_slice_sample slices[GPU_MAX_SLICES];
	struct gpu_sample devices[GPU_MAX_DEVICES];
	struct gpu_process_sample processes[GPU_MAX_PROCESSES];
};

struct gpu_config {
	const char *nvml_library;
	const char *procfs;
	const char *sysfs;
};

extern const struct gpu_config gpu_config_system;

struct gpu_source_ops {
	const char *name;
	/* -ENODEV: this machine does not have the source. That is not an error. */
	int (*open)(const struct gpu_config *config, void **ret);
	/*
	 * Appends samples; `index` and `gpu` number the GPUs of the source from 0. `pids` is for
	 * sources that cannot list the processes of a GPU.
	 */
	int (*sample)(void *source, const pid_t *pids, size_t nr_pids, u64 now_ns,
		      struct gpu_samples *samples);
	void (*close)(void *source);
};

/* When two sources know the same GPU, the first one is used: the vendor's own library. */
enum gpu_source {
	GPU_SOURCE_VENDOR,
	GPU_SOURCE_FDINFO,
	GPU_SOURCE_NR,
};

extern const struct gpu_source_ops gpu_nvml_ops;
extern const struct gpu_source_ops gpu_fdinfo_ops;

/* For the sources: add an element, or count a drop and return NULL. */
struct gpu_sample *gpu_samples_add_device(struct gpu_samples *samples);
struct gpu_process_sample *gpu_samples_add_process(struct gpu_samples *samples);
struct gpu_slice_sample *gpu_samples_add_slice(struct gpu_samples *samples);
/* Sets the address and, from sysfs, the NUMA node. */
void gpu_sample_set_address(struct gpu_sample *sample, const char *sysfs, const char *address);
