/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The numbers of the character devices that are GPUs. A process can give a file any name, but
 * only the kernel gives it a device number.
 */
#include <stdbool.h>
#include "abi/types.h"

#define GPU_DEVICE_RANGES_MAX 32

struct gpu_device_range {
	u32 major;
	u32 first_minor;
	u32 last_minor;
};

struct gpu_devices {
	u32 nr;
	struct gpu_device_range ranges[GPU_DEVICE_RANGES_MAX];
};

static inline bool gpu_devices_have(const struct gpu_devices *devices, u32 major, u32 minor)
{
	bool found = false;

	for (u32 i = 0; i < GPU_DEVICE_RANGES_MAX; i++) {
		const struct gpu_device_range *range = &devices->ranges[i];

		found |= i < devices->nr && range->major == major && minor >= range->first_minor &&
			 minor <= range->last_minor;
	}
	return found;
}
