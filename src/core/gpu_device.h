/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The numbers of the character devices that are GPUs. A process can give a file any name, but
 * only the kernel gives it a device number.
 */
#include <stdbool.h>
#include "abi/types.h"

#define GPU_DEVICE_RANGES_MAX 32

/* Kinds of device files. Only those of a GPU itself have a number that tells which one it is. */
enum gpu_file_kind {
	GPU_FILE_NONE,
	GPU_FILE_OTHER,
	GPU_FILE_NVIDIA, /* /dev/nvidia0 and following */
	GPU_FILE_RENDER, /* /dev/dri/renderD128 and following */
	GPU_FILE_NR,
};
_Static_assert((GPU_FILE_NR & (GPU_FILE_NR - 1)) == 0, "BPF masks an index with it");

/* Files of a kind that are told apart. */
#define GPU_FILES_MAX 64

#define OPENED_LONG_AGO 1

/* The files that a process has opened: a bit for each number of a kind, from 0. */
struct gpu_opened {
	u64 files[GPU_FILE_NR];
	u64 since_ns; /* when it first opened one, or OPENED_LONG_AGO: before zerneld looked */
};

struct gpu_device_range {
	u32 major;
	u32 first_minor;
	u32 last_minor;
	u32 kind; /* enum gpu_file_kind */
};

struct gpu_file {
	u32 kind;
	u32 number; /* 0 for the first minor of its range */
};

struct gpu_devices {
	u32 nr;
	struct gpu_device_range ranges[GPU_DEVICE_RANGES_MAX];
};

/* The bit of a file. A file whose number has no bit counts as all files of its kind. */
static inline u64 gpu_file_bits(const struct gpu_file *file)
{
	return file->number < GPU_FILES_MAX ? 1ULL << file->number : ~0ULL;
}

/* GPU_FILE_NONE: the device is no GPU. */
static inline struct gpu_file gpu_devices_find_file(const struct gpu_devices *devices, u32 major,
						    u32 minor)
{
	struct gpu_file file = {};

	for (u32 i = 0; i < GPU_DEVICE_RANGES_MAX; i++) {
		const struct gpu_device_range *range = &devices->ranges[i];

		if (i >= devices->nr || range->major != major || minor < range->first_minor ||
		    minor > range->last_minor)
			continue;
		file.kind = range->kind;
		file.number = minor - range->first_minor;
	}
	return file;
}
