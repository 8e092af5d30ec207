/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the nvml*.c files. */
#include "vgpu/include/vgpu_nvml.h"
#include "vgpu/shm.h"

struct nvmlDevice_st {
	u32 index;
};

/* The shared file, after NVML is initialized. */
extern struct shm *shm;

/* Checks that NVML is initialized, that the device is valid, and that `out` is not NULL. */
nvmlReturn_t nvml_check(nvmlDevice_t device, const void *out);
