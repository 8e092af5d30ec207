/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The runtime's memory and copies; see rt.c. */
#include "vgpu/per_thread.h"

RT(Error_t) RT(Malloc)(void **ptr, size_t size)
{
	return rt_result(rt_enter() ?: CU(MemAlloc_v2)((CUdeviceptr *)ptr, size));
}

RT(Error_t) RT(Free)(void *ptr)
{
	return rt_result(rt_enter() ?: CU(MemFree_v2)((CUdeviceptr)ptr));
}

RUNTIME_CALL(MallocAsync, _ptsz, (void **ptr, size_t size, RT(Stream_t) stream),
	     (ptr, size, stream))
{
	return rt_result(rt_enter()
				 ?: DRIVER(MemAllocAsync, _ptsz)((CUdeviceptr *)ptr, size, stream));
}

RT(Error_t) RT(DeviceGetDefaultMemPool)(RT(MemPool_t) * pool, int device)
{
	return rt_result(CU(Init)(0) ?: CU(DeviceGetDefaultMemPool)(pool, device));
}

RUNTIME_CALL(MallocFromPoolAsync, _ptsz,
	     (void **ptr, size_t size, RT(MemPool_t) pool, RT(Stream_t) stream),
	     (ptr, size, pool, stream))
{
	return rt_result(rt_enter()
				 ?: DRIVER(MemAllocFromPoolAsync, _ptsz)((CUdeviceptr *)ptr, size,
									 pool, stream));
}

RUNTIME_CALL(FreeAsync, _ptsz, (void *ptr, RT(Stream_t) stream), (ptr, stream))
{
	return rt_result(rt_enter() ?: DRIVER(MemFreeAsync, _ptsz)((CUdeviceptr)ptr, stream));
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

RT(Error_t) RT(HostRegister)(void *ptr, size_t size, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(MemHostRegister_v2)(ptr, size, flags));
}

RT(Error_t) RT(HostUnregister)(void *ptr)
{
	return rt_result(rt_enter() ?: CU(MemHostUnregister)(ptr));
}

RT(Error_t) RT(MemGetInfo)(size_t *free, size_t *total)
{
	return rt_result(rt_enter() ?: CU(MemGetInfo_v2)(free, total));
}

RUNTIME_CALL(Memcpy, _ptds, (void *dst, const void *src, size_t count, enum RT(MemcpyKind) kind),
	     (dst, src, count, kind))
{
	CUdeviceptr to = (CUdeviceptr)dst, from = (CUdeviceptr)src;
	CUresult r = rt_enter();

	if (r != CUDA_SUCCESS)
		return rt_result(r);
	switch (kind) {
	case RT(MemcpyHostToDevice): return rt_result(DRIVER(MemcpyHtoD_v2, _ptds)(to, src, count));
	case RT(MemcpyDeviceToHost):
		return rt_result(DRIVER(MemcpyDtoH_v2, _ptds)(dst, from, count));
	case RT(MemcpyDeviceToDevice):
		return rt_result(DRIVER(MemcpyDtoD_v2, _ptds)(to, from, count));
	case RT(MemcpyHostToHost):
	case RT(MemcpyDefault): return rt_result(DRIVER(Memcpy, _ptds)(to, from, count));
	}
	return rt_result((CUresult)RT(ErrorInvalidMemcpyDirection));
}

RUNTIME_CALL(MemcpyAsync, _ptsz,
	     (void *dst, const void *src, size_t count, enum RT(MemcpyKind) kind,
	      RT(Stream_t) stream),
	     (dst, src, count, kind, stream))
{
	CUdeviceptr to = (CUdeviceptr)dst, from = (CUdeviceptr)src;
	CUresult r = rt_enter();

	if (r != CUDA_SUCCESS)
		return rt_result(r);
	switch (kind) {
	case RT(MemcpyHostToDevice):
		return rt_result(DRIVER(MemcpyHtoDAsync_v2, _ptsz)(to, src, count, stream));
	case RT(MemcpyDeviceToHost):
		return rt_result(DRIVER(MemcpyDtoHAsync_v2, _ptsz)(dst, from, count, stream));
	case RT(MemcpyDeviceToDevice):
		return rt_result(DRIVER(MemcpyDtoDAsync_v2, _ptsz)(to, from, count, stream));
	case RT(MemcpyHostToHost):
	case RT(MemcpyDefault):
		return rt_result(DRIVER(MemcpyAsync, _ptsz)(to, from, count, stream));
	}
	return rt_result((CUresult)RT(ErrorInvalidMemcpyDirection));
}

/* The memory types of both ends, by the direction of the copy. */
static const struct {
	int src, dst;
} copy_types[] = {
	[RT(MemcpyHostToHost)] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST },
	[RT(MemcpyHostToDevice)] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE },
	[RT(MemcpyDeviceToHost)] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST },
	[RT(MemcpyDeviceToDevice)] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE },
	[RT(MemcpyDefault)] = { CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED },
};

RUNTIME_CALL(Memcpy2DAsync, _ptsz,
	     (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	      enum RT(MemcpyKind) kind, RT(Stream_t) stream),
	     (dst, dpitch, src, spitch, width, height, kind, stream))
{
	CUDA_MEMCPY2D copy = {
		.srcHost = src,
		.srcDevice = (CUdeviceptr)src,
		.srcPitch = spitch,
		.dstHost = dst,
		.dstDevice = (CUdeviceptr)dst,
		.dstPitch = dpitch,
		.WidthInBytes = width,
		.Height = height,
	};

	if ((unsigned int)kind > RT(MemcpyDefault))
		return rt_result((CUresult)RT(ErrorInvalidMemcpyDirection));
	copy.srcMemoryType = copy_types[kind].src;
	copy.dstMemoryType = copy_types[kind].dst;
	return rt_result(rt_enter() ?: DRIVER(Memcpy2DAsync_v2, _ptsz)(&copy, stream));
}

RUNTIME_CALL(Memset, _ptds, (void *ptr, int value, size_t count), (ptr, value, count))
{
	return rt_result(rt_enter()
				 ?: DRIVER(MemsetD8_v2, _ptds)((CUdeviceptr)ptr,
							       (unsigned char)value, count));
}

RUNTIME_CALL(MemsetAsync, _ptsz, (void *ptr, int value, size_t count, RT(Stream_t) stream),
	     (ptr, value, count, stream))
{
	return rt_result(rt_enter()
				 ?: DRIVER(MemsetD8Async, _ptsz)(
					    (CUdeviceptr)ptr, (unsigned char)value, count, stream));
}
