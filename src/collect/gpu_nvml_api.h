/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The part of NVML that Zernel uses. The names, signatures and layouts come from its public
 * reference, so that the build needs neither its headers nor the library. These calls can
 * hang when the driver hangs, so only the process zernel-gpu makes them.
 */
#include "base/macros.h"
#include "collect/gpu.h"

struct nvml_api;

/* -ENODEV: the library is missing, is too old, or finds no driver. */
int nvml_api_open(const char *library, struct nvml_api **ret);
struct nvml_api *nvml_api_close(struct nvml_api *api);
DEFINE_CLEANUP(struct nvml_api, nvml_api_close);

/* Finds the GPUs and reads the fields that do not change. */
void nvml_api_identify(struct nvml_api *api, const char *sysfs, struct gpu_samples *ret);
/* Adds the fields that change. */
void nvml_api_measure(struct nvml_api *api, struct gpu_samples *samples);
