/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that look kernels up and launch them. The caller chooses the handle. */
#include "signals/kernels.h"
#include <stdint.h>

int cuModuleGetFunction(u64 *function, u64 handle, const char *name)
{
	*function = handle;
	return *name ? 0 : 500;
}

int cuLibraryGetKernel(u64 *kernel, u64 handle, const char *name)
{
	return cuModuleGetFunction(kernel, handle, name);
}

int cuKernelGetFunction(u64 *function, u64 kernel)
{
	*function = kernel + KERNELS_FUNCTION;
	return 0;
}

static int (*volatile driver)(u64 function, unsigned int grid_x, unsigned int grid_y,
			      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			      unsigned int block_z, unsigned int shared, void *stream,
			      void **params, void **extra) = cuLaunchKernel;

int cuLaunchKernel(u64 function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		   unsigned int block_x, unsigned int block_y, unsigned int block_z,
		   unsigned int shared, void *stream, void **params, void **extra)
{
	return 0;
}

/* Launches the kernel in `args` through the driver, unless it is NULL. */
int cudaLaunchKernel(const void *function, struct kernels_dim grid, struct kernels_dim block,
		     void **args, size_t shared, void *stream)
{
	return args ? driver((u64)(uintptr_t)args, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) : 0;
}

int cuGraphLaunch(void *graph, void *stream)
{
	return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	return 0;
}

int cuStreamEndCapture(void *stream, void **graph)
{
	return 0;
}
