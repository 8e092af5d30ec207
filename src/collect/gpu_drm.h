/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The GPUs that sysfs lists, and the processes that AMD's compute driver (KFD) lists on them. */
#include "collect/gpu.h"

struct drm_gpu {
	char address[GPU_ADDRESS_LEN];
	u32 render_file; /* the number of /dev/dri/renderDN */
};

/*
 * The GPUs with a render node, in the order of their addresses, at most GPU_MAX_DEVICES. Leaves out
 * the GPUs of NVIDIA, which NVML numbers. Returns their number.
 */
u32 drm_gpus_list(const char *sysfs, struct drm_gpu ret[GPU_MAX_DEVICES]);

/* A GPU in the topology of KFD. */
struct kfd_gpu {
	u32 gpu_id;
	u64 unique_id; /* 0: it has none */
	char address[GPU_ADDRESS_LEN];
};

u32 kfd_gpus_list(const char *sysfs, struct kfd_gpu ret[GPU_MAX_DEVICES]);

/*
 * Calls `fn` with the gpu_id of each queue of a process; a GPU can have several. False: the process
 * has more queues than are looked at.
 */
bool kfd_queues_list(const char *sysfs, u32 pid, void (*fn)(void *ctx, u32 gpu_id), void *ctx);
