/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The time in which any kernel ran, from the utilization samples of NVML. The driver measures
 * whole percent of a period of 1/6 to 1 s, and keeps the samples of the last periods. Each
 * sample is added once, so that the sum covers all time.
 */
#include "collect/gpu.h"

struct nvml_util;

/*
 * Uses NVML loaded as `library`. NULL: the library does not have the function, or out of
 * memory.
 */
struct nvml_util *nvml_util_new(void *library);
struct nvml_util *nvml_util_free(struct nvml_util *util);

/* Adds the busy time, unless the sample already has one from a better counter. */
void nvml_util_measure(struct nvml_util *util, u32 gpu, void *device, struct gpu_sample *sample);
