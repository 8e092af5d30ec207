/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Calls that only the CUDA runtime has; see rt.c. */
#include <string.h>

#include "vgpu/identity.h"
#include "vgpu/per_thread.h"

RUNTIME_CALL(EventRecordWithFlags, _ptsz,
	     (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))
{
	return rt_result(rt_enter() ?: DRIVER(EventRecordWithFlags, _ptsz)(event, stream, flags));
}

/*
 * The layout after the memory size differs between releases, so nothing is written
 * there. The UUID is at the same place in all of them.
 */
static cudaError_t properties(struct cudaDeviceProp *prop, int device)
{
	CUresult r = prop ? cuInit(0) : CUDA_ERROR_INVALID_VALUE;
	struct cudaDeviceProp found = {};
	CUuuid uuid;

	r = r ?: cuDeviceGetName(found.name, sizeof(found.name), device);
	r = r ?: cuDeviceGetUuid_v2(&uuid, device);
	r = r ?: cuDeviceTotalMem_v2(&found.totalGlobalMem, device);
	if (r == CUDA_SUCCESS) {
		memcpy(found.uuid, uuid.bytes, sizeof(found.uuid));
		*prop = found;
	}
	return rt_result(r);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	return properties(prop, device);
}

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
	return properties(prop, device);
}

static cudaError_t entry_point(bool per_thread, const char *symbol, void **func,
			       unsigned int version, unsigned long long flags,
			       enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
	CUresult r = symbol && func ? cuInit(0) : CUDA_ERROR_INVALID_VALUE;

	if (!flags && per_thread)
		flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	if (r == CUDA_SUCCESS)
		r = cuGetProcAddress_v2(symbol, func, (int)version, flags, &found);
	if (r == CUDA_SUCCESS && status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return rt_result(r);
}

RUNTIME_CALL(GetDriverEntryPoint, _ptsz,
	     (const char *symbol, void **func, unsigned long long flags,
	      enum cudaDriverEntryPointQueryResult *status),
	     (symbol, func, flags, status))
{
	return entry_point(per_thread, symbol, func, IDENTITY_VERSION, flags, status);
}

RUNTIME_CALL(GetDriverEntryPointByVersion, _ptsz,
	     (const char *symbol, void **func, unsigned int version, unsigned long long flags,
	      enum cudaDriverEntryPointQueryResult *status),
	     (symbol, func, version, flags, status))
{
	return entry_point(per_thread, symbol, func, version, flags, status);
}
