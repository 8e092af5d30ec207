/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Calls that only HIP exports; rt.c has the calls that it shares with CUDA. */
#include <string.h>

#include "vgpu/engine.h"
#include "vgpu/identity.h"
#include "vgpu/rt.h"

hipError_t hipInit(unsigned int flags)
{
	return rt_result(CU(Init)(flags));
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceGet)(device, ordinal));
}

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceGetName)(name, length, device));
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
	CUresult r = uuid ? CU(Init)(0) ?: device_check(device) : CUDA_ERROR_INVALID_VALUE;
	char id[IDENTITY_UUID_BYTES + 1];

	if (r == CUDA_SUCCESS) {
		identity_unique_id(engine.visible[device], id);
		memcpy(uuid->bytes, id, sizeof(uuid->bytes));
	}
	return rt_result(r);
}

hipError_t hipGetDevicePropertiesR0600(struct hipDeviceProp_tR0600 *prop, int device)
{
	struct hipDeviceProp_tR0600 found = {};
	hipError_t err = prop ? hipDeviceGetUuid(&found.uuid, device) : hipErrorInvalidValue;

	if (err == hipSuccess)
		err = hipDeviceGetName(found.name, sizeof(found.name), device);
	if (err == hipSuccess)
		err = hipDeviceTotalMem(&found.totalGlobalMem, device);
	if (err == hipSuccess)
		*prop = found;
	return err;
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceTotalMem_v2)(bytes, device));
}

hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(MemHostAlloc)(ptr, size, flags));
}

hipError_t hipHostFree(void *ptr)
{
	return rt_result(rt_enter() ?: CU(MemFreeHost)(ptr));
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, const void *src, size_t count)
{
	return rt_result(rt_enter() ?: CU(MemcpyHtoD_v2)((CUdeviceptr)dst, src, count));
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t count)
{
	return rt_result(rt_enter() ?: CU(MemcpyDtoH_v2)(dst, (CUdeviceptr)src, count));
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t count)
{
	return rt_result(rt_enter()
				 ?: CU(MemcpyDtoD_v2)((CUdeviceptr)dst, (CUdeviceptr)src, count));
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void *src, size_t count, hipStream_t stream)
{
	return rt_result(rt_enter()
				 ?: CU(MemcpyHtoDAsync_v2)((CUdeviceptr)dst, src, count, stream));
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t count, hipStream_t stream)
{
	return rt_result(rt_enter()
				 ?: CU(MemcpyDtoHAsync_v2)(dst, (CUdeviceptr)src, count, stream));
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t count,
			      hipStream_t stream)
{
	return rt_result(rt_enter()
				 ?: CU(MemcpyDtoDAsync_v2)((CUdeviceptr)dst, (CUdeviceptr)src,
							   count, stream));
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
	return rt_result(rt_enter() ?: CU(ModuleLoadData)(module, image));
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
	return rt_result(CU(ModuleGetFunction)(function, module, name));
}

hipError_t hipModuleUnload(hipModule_t module)
{
	return rt_result(CU(ModuleUnload)(module));
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
				 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				 unsigned int block_z, unsigned int shared, hipStream_t stream,
				 void **params, void **extra)
{
	return rt_result(rt_enter()
				 ?: CU(LaunchKernel)(function, grid_x, grid_y, grid_z, block_x,
						     block_y, block_z, shared, stream, params,
						     extra));
}
