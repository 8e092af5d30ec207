/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What we use of NVML: names, signatures and layouts from its public reference,
 * so that neither its headers nor the library are needed to build. These calls
 * may hang when a driver does; gpu_nvml.c therefore makes them in a thread.
 */
#include "base/macros.h"
#include "collect/gpu.h"

struct nvml_api;

/* -ENODEV when the library is not there, is too old, or finds no driver. */
int nvml_api_open(const char *library, struct nvml_api **ret);
struct nvml_api *nvml_api_close(struct nvml_api *api);
DEFINE_CLEANUP(struct nvml_api, nvml_api_close);

/* Finds the devices and what does not change about them. */
void nvml_api_identify(struct nvml_api *api, const char *sysfs, struct gpu_samples *ret);
/* Adds to such samples what does. */
void nvml_api_measure(struct nvml_api *api, struct gpu_samples *samples);
