/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include "abi/types.h"

/* The handle of the function of a kernel, less that of the kernel. */
#define KERNELS_FUNCTION 0x1000

int cuModuleGetFunction(u64 *function, u64 handle, const char *name);
int cuLibraryGetKernel(u64 *kernel, u64 handle, const char *name);
int cuKernelGetFunction(u64 *function, u64 kernel);

struct kernels_dim {
	unsigned int x, y, z;
};

int cuLaunchKernel(u64 function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		   unsigned int block_x, unsigned int block_y, unsigned int block_z,
		   unsigned int shared, void *stream, void **params, void **extra);
int cudaLaunchKernel(const void *function, struct kernels_dim grid, struct kernels_dim block,
		     void **args, size_t shared, void *stream);
int cuGraphLaunch(void *graph, void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
