/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the nvml*.c files. */
#include "vgpu/include/vgpu_nvml.h"
#include "vgpu/shm.h"

struct nvmlDevice_st {
	u32 index;
};

/* What all devices share, once NVML is initialised. */
extern struct shm *shm;

/* Whether NVML is initialised, the device is one, and there is room for the answer. */
nvmlReturn_t nvml_check(nvmlDevice_t device, const void *out);
