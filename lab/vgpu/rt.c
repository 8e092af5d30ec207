/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The runtime, compiled twice: as libcudart on top of libcuda, so that probes see both
 * levels of calls as in reality, and as the runtime part of libamdhip64. A thread that
 * never selected a device uses the first device.
 */
#include "vgpu/rt.h"

#include "vgpu/identity.h"

static _Thread_local CUresult last_error;
static _Thread_local int chosen_device;

RT(Error_t) rt_result(CUresult r)
{
	if (r != CUDA_SUCCESS)
		last_error = r;
	return (RT(Error_t))r;
}

RT(Error_t) RT(PeekAtLastError)(void)
{
	return (RT(Error_t))last_error;
}

RT(Error_t) RT(GetLastError)(void)
{
	CUresult r = last_error;

	last_error = CUDA_SUCCESS;
	return (RT(Error_t))r;
}

/* The runtime retains each primary context once for all threads. */
static CUresult device_use(int device)
{
	CUcontext ctx;
	int active = 0;
	unsigned int flags;
	CUresult r = CU(DevicePrimaryCtxGetState)(device, &flags, &active)
			     ?: CU(DevicePrimaryCtxRetain)(&ctx, device);

	if (r == CUDA_SUCCESS && active)
		r = CU(DevicePrimaryCtxRelease_v2)(device);
	if (r == CUDA_SUCCESS)
		r = CU(CtxSetCurrent)(ctx);
	if (r == CUDA_SUCCESS)
		chosen_device = device;
	return r;
}

CUresult rt_enter(void)
{
	CUdevice device;
	CUresult r = CU(CtxGetDevice)(&device);

	if (r == CUDA_ERROR_NOT_INITIALIZED) {
		r = CU(Init)(0);
		if (r != CUDA_SUCCESS)
			return r;
		r = CU(CtxGetDevice)(&device);
	}
	return r == CUDA_ERROR_INVALID_CONTEXT ? device_use(chosen_device) : r;
}

RT(Error_t) RT(GetDeviceCount)(int *count)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceGetCount)(count));
}

RT(Error_t) RT(SetDevice)(int device)
{
	return rt_result(CU(Init)(0) ?: device_use(device));
}

RT(Error_t) RT(GetDevice)(int *device)
{
	return rt_result(rt_enter() ?: CU(CtxGetDevice)(device));
}

RT(Error_t) RT(SetDeviceFlags)(unsigned int flags)
{
	CUdevice device;

	if ((flags & RT(DeviceScheduleMask)) == 3 || flags & ~0x1fU)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	return rt_result(rt_enter() ?:
		      CU(CtxGetDevice)(&device) ?:
		      CU(DevicePrimaryCtxSetFlags_v2)(device, flags));
}

RT(Error_t) RT(GetDeviceFlags)(unsigned int *flags)
{
	return rt_result(rt_enter() ?: CU(CtxGetFlags)(flags));
}

RT(Error_t) RT(DeviceSynchronize)(void)
{
	return rt_result(rt_enter() ?: CU(CtxSynchronize)());
}

RT(Error_t) RT(DeviceReset)(void)
{
	CUdevice device;

	return rt_result(rt_enter() ?:
		      CU(CtxGetDevice)(&device) ?:
		      CU(DevicePrimaryCtxReset_v2)(device));
}

RT(Error_t) RT(DeviceGetAttribute)(int *value, int attribute, int device)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceGetAttribute)(value, attribute, device));
}

RT(Error_t) RT(DeviceGetPCIBusId)(char *id, int length, int device)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceGetPCIBusId)(id, length, device));
}

RT(Error_t) RT(RuntimeGetVersion)(int *version)
{
	if (!version)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	*version = IDENTITY_VERSION;
	return RT(Success);
}

RT(Error_t) RT(DriverGetVersion)(int *version)
{
	return rt_result(CU(DriverGetVersion)(version));
}
