/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the nvml*.c files. */
#include "vgpu/include/vgpu_nvml.h"
#include "vgpu/shm.h"

/* A device, or a part of one (MIG). */
struct nvmlDevice_st {
	u32 index;
	u32 slice; /* from 1; 0: the device */
};

/* The shared file, after NVML is initialized. */
extern struct shm *shm;

/* The handle of a part of a device, or NULL. */
nvmlDevice_t nvml_slice(nvmlDevice_t device, u32 index);

/* Checks that NVML is initialized, that the device is valid, and that `out` is not NULL. */
nvmlReturn_t nvml_check(nvmlDevice_t device, const void *out);

/* The same for calls that also accept a part of a device. */
nvmlReturn_t nvml_check_any(nvmlDevice_t device, const void *out);

/* The same for counters, which a divided device does not have. */
nvmlReturn_t nvml_check_counters(nvmlDevice_t device, const void *out);
