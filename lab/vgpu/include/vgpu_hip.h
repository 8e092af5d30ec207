/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HIP (libamdhip64.so.6), written from its public documentation. rt_api.inc contains
 * the calls that it shares with the CUDA runtime; RT(Malloc) stands for hipMalloc.
 */
#include <stddef.h>

#include "vgpu/include/vgpu.h"

#define RT(name) hip##name
#include "vgpu/include/rt_api.inc"
#undef RT

#define hipErrorOutOfMemory    hipErrorMemoryAllocation
#define hipErrorInvalidHandle  hipErrorInvalidResourceHandle
#define hipErrorInvalidContext hipErrorDeviceUninitialized

typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct CUmod_st *hipModule_t;
typedef struct CUfunc_st *hipFunction_t;

typedef struct {
	char bytes[16];
} hipUUID;

/* The first members. The ones after them differ between releases. */
struct hipDeviceProp_tR0600 {
	char name[256];
	hipUUID uuid;
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem;
};

hipError_t hipInit(unsigned int flags);
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal);
hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device);
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device);
hipError_t hipGetDevicePropertiesR0600(struct hipDeviceProp_tR0600 *prop, int device);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags);
hipError_t hipHostFree(void *ptr);
hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, const void *src, size_t count);
hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t count);
hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t count);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void *src, size_t count,
			      hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t count, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t count,
			      hipStream_t stream);
hipError_t hipModuleLoadData(hipModule_t *module, const void *image);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
				 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				 unsigned int block_z, unsigned int shared, hipStream_t stream,
				 void **params, void **extra);
