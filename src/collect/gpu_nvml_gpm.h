/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How much of a device worked: NVML's performance monitoring, which Hopper and newer
 * have. Beside utilisation, which counts a device as busy while any kernel is on it,
 * one of a collective that waits for other ranks included.
 */
#include "collect/gpu.h"

struct nvml_gpm;

/* From NVML that is loaded as `library`; NULL where it has none of this, or no memory. */
struct nvml_gpm *nvml_gpm_new(void *library);
struct nvml_gpm *nvml_gpm_free(struct nvml_gpm *gpm);

/* Adds what the device did since it was first asked. `device` is NVML's handle of the `gpu`-th. */
void nvml_gpm_measure(struct nvml_gpm *gpm, u32 gpu, void *device, struct gpu_sample *sample);
