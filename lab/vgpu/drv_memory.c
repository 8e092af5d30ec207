/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls that allocate and free memory. */
#include "vgpu/engine.h"
#include "vgpu/per_thread.h"

#define PITCH_BYTES 512

CUresult CU(MemAlloc_v2)(CUdeviceptr *ptr, size_t size)
{
	return book_alloc(VGPU_ALLOC_PLAIN, size, (u64 *)ptr);
}

CUresult CU(MemAllocPitch_v2)(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			      unsigned int element_bytes)
{
	size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES, size;
	CUresult r;

	if (!pitch || !width || !height || row < width)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(row, height, &size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = book_alloc(VGPU_ALLOC_PITCHED, size, (u64 *)ptr);
	if (r == CUDA_SUCCESS)
		*pitch = row;
	return r;
}

CUresult CU(MemAllocManaged)(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	return book_alloc(VGPU_ALLOC_MANAGED, size, (u64 *)ptr);
}

STREAM_CALL(MemAllocAsync, (CUdeviceptr * ptr, size_t size, CUstream stream), (ptr, size, stream))
{
	struct CUstream_st *found;

	return stream_get(stream, &found) ?: book_alloc(VGPU_ALLOC_ASYNC, size, (u64 *)ptr);
}

/* Each device has one pool. */
struct CUmemPoolHandle_st {
	u8 unused;
};
static struct CUmemPoolHandle_st pools[SHM_DEVICES];

CUresult CU(DeviceGetDefaultMemPool)(CUmemoryPool *pool, CUdevice device)
{
	CUresult r = device_check(device);

	if (r != CUDA_SUCCESS || !pool)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*pool = &pools[device];
	return CUDA_SUCCESS;
}

STREAM_CALL(MemAllocFromPoolAsync,
	    (CUdeviceptr * ptr, size_t size, CUmemoryPool pool, CUstream stream),
	    (ptr, size, pool, stream))
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS || pool != &pools[found->ctx->ordinal])
		return r ?: CUDA_ERROR_INVALID_VALUE;
	return book_alloc(VGPU_ALLOC_ASYNC, size, (u64 *)ptr);
}

CUresult CU(MemHostAlloc)(void **ptr, size_t size, unsigned int flags)
{
	return book_alloc(VGPU_ALLOC_HOST, size, (u64 *)ptr);
}

CUresult CU(MemAllocHost_v2)(void **ptr, size_t size)
{
	return book_alloc(VGPU_ALLOC_HOST, size, (u64 *)ptr);
}

/* A free waits for the device, like the real call: the memory may be in use. */
static CUresult free_synced(u64 ptr, bool host)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !ptr)
		return r;
	ctx_drain(ctx);
	return book_free(ptr, host);
}

CUresult CU(MemFree_v2)(CUdeviceptr ptr)
{
	return free_synced(ptr, false);
}

CUresult CU(MemFreeHost)(void *ptr)
{
	return free_synced((u64)ptr, true);
}

STREAM_CALL(MemFreeAsync, (CUdeviceptr ptr, CUstream stream), (ptr, stream))
{
	struct CUstream_st *found;

	return stream_get(stream, &found) ?: ptr ? book_free(ptr, false) : CUDA_SUCCESS;
}

CUresult CU(MemHostRegister_v2)(void *ptr, size_t size, unsigned int flags)
{
	return book_register((u64)ptr, size);
}

CUresult CU(MemHostUnregister)(void *ptr)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	ctx_drain(ctx);
	return book_unregister((u64)ptr);
}

CUresult CU(MemGetInfo_v2)(size_t *free, size_t *total)
{
	struct shm *shm = engine.shm;
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !free || !total)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	SHM_LOCKED(shm);
	shm_reap(shm);
	*total = shm->config.memory_bytes;
	*free = *total - shm_memory_used(shm, ctx->device);
	return CUDA_SUCCESS;
}
