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

RT(Error_t) RT(StreamCreate)(RT(Stream_t) * stream)
{
	return rt_result(rt_enter() ?: CU(StreamCreate)(stream, 0));
}

RT(Error_t) RT(StreamCreateWithFlags)(RT(Stream_t) * stream, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(StreamCreate)(stream, flags));
}

RT(Error_t) RT(StreamDestroy)(RT(Stream_t) stream)
{
	return rt_result(rt_enter() ?: CU(StreamDestroy_v2)(stream));
}

RT(Error_t) RT(StreamSynchronize)(RT(Stream_t) stream)
{
	return rt_result(rt_enter() ?: CU(StreamSynchronize)(stream));
}

RT(Error_t) RT(StreamQuery)(RT(Stream_t) stream)
{
	return rt_result(rt_enter() ?: CU(StreamQuery)(stream));
}

RT(Error_t) RT(StreamWaitEvent)(RT(Stream_t) stream, RT(Event_t) event, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(StreamWaitEvent)(stream, event, flags));
}

RT(Error_t) RT(EventCreate)(RT(Event_t) * event)
{
	return rt_result(rt_enter() ?: CU(EventCreate)(event, 0));
}

RT(Error_t) RT(EventCreateWithFlags)(RT(Event_t) * event, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(EventCreate)(event, flags));
}

RT(Error_t) RT(EventRecord)(RT(Event_t) event, RT(Stream_t) stream)
{
	return rt_result(rt_enter() ?: CU(EventRecord)(event, stream));
}

RT(Error_t) RT(EventQuery)(RT(Event_t) event)
{
	return rt_result(rt_enter() ?: CU(EventQuery)(event));
}

RT(Error_t) RT(EventSynchronize)(RT(Event_t) event)
{
	return rt_result(rt_enter() ?: CU(EventSynchronize)(event));
}

RT(Error_t) RT(EventElapsedTime)(float *ms, RT(Event_t) start, RT(Event_t) end)
{
	return rt_result(rt_enter() ?: CU(EventElapsedTime)(ms, start, end));
}

RT(Error_t) RT(EventDestroy)(RT(Event_t) event)
{
	return rt_result(rt_enter() ?: CU(EventDestroy_v2)(event));
}

RT(Error_t) RT(Malloc)(void **ptr, size_t size)
{
	return rt_result(rt_enter() ?: CU(MemAlloc_v2)((CUdeviceptr *)ptr, size));
}

RT(Error_t) RT(Free)(void *ptr)
{
	return rt_result(rt_enter() ?: CU(MemFree_v2)((CUdeviceptr)ptr));
}

RT(Error_t) RT(MallocAsync)(void **ptr, size_t size, RT(Stream_t) stream)
{
	return rt_result(rt_enter() ?: CU(MemAllocAsync)((CUdeviceptr *)ptr, size, stream));
}

RT(Error_t) RT(FreeAsync)(void *ptr, RT(Stream_t) stream)
{
	return rt_result(rt_enter() ?: CU(MemFreeAsync)((CUdeviceptr)ptr, stream));
}

RT(Error_t) RT(MallocPitch)(void **ptr, size_t *pitch, size_t width, size_t height)
{
	return rt_result(
		rt_enter() ?: CU(MemAllocPitch_v2)((CUdeviceptr *)ptr, pitch, width, height, 4));
}

RT(Error_t) RT(MallocManaged)(void **ptr, size_t size, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(MemAllocManaged)((CUdeviceptr *)ptr, size, flags));
}

RT(Error_t) RT(MallocHost)(void **ptr, size_t size)
{
	return rt_result(rt_enter() ?: CU(MemAllocHost_v2)(ptr, size));
}

RT(Error_t) RT(HostAlloc)(void **ptr, size_t size, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(MemHostAlloc)(ptr, size, flags));
}

RT(Error_t) RT(FreeHost)(void *ptr)
{
	return rt_result(rt_enter() ?: CU(MemFreeHost)(ptr));
}

RT(Error_t) RT(MemGetInfo)(size_t *free, size_t *total)
{
	return rt_result(rt_enter() ?: CU(MemGetInfo_v2)(free, total));
}

RT(Error_t) RT(Memcpy)(void *dst, const void *src, size_t count, enum RT(MemcpyKind) kind)
{
	CUdeviceptr to = (CUdeviceptr)dst, from = (CUdeviceptr)src;
	CUresult r = rt_enter();

	if (r != CUDA_SUCCESS)
		return rt_result(r);
	switch (kind) {
	case RT(MemcpyHostToDevice): return rt_result(CU(MemcpyHtoD_v2)(to, src, count));
	case RT(MemcpyDeviceToHost): return rt_result(CU(MemcpyDtoH_v2)(dst, from, count));
	case RT(MemcpyDeviceToDevice): return rt_result(CU(MemcpyDtoD_v2)(to, from, count));
	case RT(MemcpyHostToHost):
	case RT(MemcpyDefault): return rt_result(CU(Memcpy)(to, from, count));
	}
	return rt_result((CUresult)RT(ErrorInvalidMemcpyDirection));
}

RT(Error_t)
RT(MemcpyAsync)(void *dst, const void *src, size_t count, enum RT(MemcpyKind) kind, RT(Stream_t) s)
{
	CUdeviceptr to = (CUdeviceptr)dst, from = (CUdeviceptr)src;
	CUresult r = rt_enter();

	if (r != CUDA_SUCCESS)
		return rt_result(r);
	switch (kind) {
	case RT(MemcpyHostToDevice): return rt_result(CU(MemcpyHtoDAsync_v2)(to, src, count, s));
	case RT(MemcpyDeviceToHost): return rt_result(CU(MemcpyDtoHAsync_v2)(dst, from, count, s));
	case RT(MemcpyDeviceToDevice): return rt_result(CU(MemcpyDtoDAsync_v2)(to, from, count, s));
	case RT(MemcpyHostToHost):
	case RT(MemcpyDefault): return rt_result(CU(MemcpyAsync)(to, from, count, s));
	}
	return rt_result((CUresult)RT(ErrorInvalidMemcpyDirection));
}

RT(Error_t) RT(Memset)(void *ptr, int value, size_t count)
{
	return rt_result(rt_enter()
				 ?: CU(MemsetD8_v2)((CUdeviceptr)ptr, (unsigned char)value, count));
}

RT(Error_t) RT(MemsetAsync)(void *ptr, int value, size_t count, RT(Stream_t) stream)
{
	return rt_result(rt_enter()
				 ?: CU(MemsetD8Async)((CUdeviceptr)ptr, (unsigned char)value, count,
						      stream));
}
