/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* All sources in one process, with their samples joined as zerneld joins them. */
#include <errno.h>
#include <stdlib.h>
#include "collect/gpu.h"
#include "collect/gpu_merge.h"

struct gpu {
	void *opened[GPU_SOURCE_NR];
	struct gpu_merge merge;
	struct gpu_samples scratch;
};

static const struct gpu_source_ops *const gpu_sources[] = {
	[GPU_SOURCE_VENDOR] = &gpu_nvml_ops,
	[GPU_SOURCE_FDINFO] = &gpu_fdinfo_ops,
};

static inline struct gpu *gpu_free(struct gpu *gpu)
{
	for (u32 i = 0; gpu && i < GPU_SOURCE_NR; i++)
		if (gpu->opened[i])
			gpu_sources[i]->close(gpu->opened[i]);
	free(gpu);
	return NULL;
}

static inline int gpu_new(const struct gpu_config *config, struct gpu **ret)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return -ENOMEM;
	for (u32 i = 0; i < GPU_SOURCE_NR; i++) {
		int err = gpu_sources[i]->open(config, &gpu->opened[i]);

		if (err < 0 && err != -ENODEV) {
			gpu_free(gpu);
			return err;
		}
	}
	*ret = gpu;
	return 0;
}

static inline int gpu_read(struct gpu *gpu, const pid_t *pids, size_t nr_pids, u64 now_ns,
			   struct gpu_samples *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (u32 i = 0; i < GPU_SOURCE_NR; i++) {
		int err;

		if (!gpu->opened[i])
			continue;
		memset(&gpu->scratch, 0, sizeof(gpu->scratch));
		err = gpu_sources[i]->sample(gpu->opened[i], pids, nr_pids, now_ns, &gpu->scratch);
		if (err < 0)
			return err;
		gpu_merge_add(&gpu->merge, i, &gpu->scratch, ret);
	}
	return 0;
}
