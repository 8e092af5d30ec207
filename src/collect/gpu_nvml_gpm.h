/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * From the GPU performance monitoring of NVML (Hopper and newer): the time in which any kernel
 * ran, and the share of the multiprocessors that worked. The latter does not count a
 * collective kernel that waits for other ranks.
 */
#include "collect/gpu.h"

struct nvml_gpm;

/*
 * Uses NVML loaded as `library`. NULL: the library does not have these functions, or out of
 * memory.
 */
struct nvml_gpm *nvml_gpm_new(void *library);
struct nvml_gpm *nvml_gpm_free(struct nvml_gpm *gpm);

/* Adds the active and the busy time since the first call. `device` is the NVML handle of GPU number
 * `gpu`. */
void nvml_gpm_measure(struct nvml_gpm *gpm, u32 gpu, void *device, struct gpu_sample *sample);
