/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls that allocate, free, copy and set memory. */
#include <string.h>

#include "vgpu/engine.h"

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

CUresult CU(MemAllocAsync)(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	struct CUstream_st *found;

	return stream_get(stream, &found) ?: book_alloc(VGPU_ALLOC_ASYNC, size, (u64 *)ptr);
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

CUresult CU(MemFreeAsync)(CUdeviceptr ptr, CUstream stream)
{
	struct CUstream_st *found;

	return stream_get(stream, &found) ?: ptr ? book_free(ptr, false) : CUDA_SUCCESS;
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

static u64 copy_ns(size_t count)
{
	return (u64)((double)count * 1e9 / (double)engine.shm->config.bandwidth);
}

/* The ends of a copy that must be device memory. */
enum copy_ends { COPY_DST = 1, COPY_SRC = 2, COPY_BOTH = 3 };

static CUresult copy_check(u64 dst, u64 src, size_t count, enum copy_ends ends)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if ((ends & COPY_DST && !book_covers(dst, count)) ||
	    (ends & COPY_SRC && !book_covers(src, count)) || !dst || !src)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy_wait(u64 dst, u64 src, size_t count, enum copy_ends ends)
{
	if (!count)
		return CUDA_SUCCESS;
	return copy_check(dst, src, count, ends)
		       ?: stream_submit_wait(TRUTH_WORK_COPY, copy_ns(count));
}

static CUresult copy_async(u64 dst, u64 src, size_t count, enum copy_ends ends, CUstream stream)
{
	if (!count)
		return CUDA_SUCCESS;
	return copy_check(dst, src, count, ends)
		       ?: stream_submit(stream, TRUTH_WORK_COPY, copy_ns(count));
}

CUresult CU(MemcpyHtoD_v2)(CUdeviceptr dst, const void *src, size_t count)
{
	return copy_wait(dst, (u64)src, count, COPY_DST);
}

CUresult CU(MemcpyDtoH_v2)(void *dst, CUdeviceptr src, size_t count)
{
	return copy_wait((u64)dst, src, count, COPY_SRC);
}

CUresult CU(MemcpyDtoD_v2)(CUdeviceptr dst, CUdeviceptr src, size_t count)
{
	return copy_wait(dst, src, count, COPY_BOTH);
}

CUresult CU(MemcpyHtoDAsync_v2)(CUdeviceptr dst, const void *src, size_t count, CUstream stream)
{
	return copy_async(dst, (u64)src, count, COPY_DST, stream);
}

CUresult CU(MemcpyDtoHAsync_v2)(void *dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return copy_async((u64)dst, src, count, COPY_SRC, stream);
}

CUresult CU(MemcpyDtoDAsync_v2)(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return copy_async(dst, src, count, COPY_BOTH, stream);
}

/* If both pointers are on the host, copies and returns true. */
static bool copy_on_host(u64 dst, u64 src, size_t count)
{
	if (!count || !dst || !src || book_covers(dst, 1) || book_covers(src, 1))
		return false;
	memcpy((void *)dst, (const void *)src, count);
	return true;
}

static enum copy_ends copy_ends(u64 dst, u64 src)
{
	return (book_covers(dst, 1) ? COPY_DST : 0) | (book_covers(src, 1) ? COPY_SRC : 0);
}

CUresult CU(Memcpy)(CUdeviceptr dst, CUdeviceptr src, size_t count)
{
	if (copy_on_host(dst, src, count))
		return CUDA_SUCCESS;
	return copy_wait(dst, src, count, copy_ends(dst, src));
}

CUresult CU(MemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream)
{
	if (copy_on_host(dst, src, count))
		return CUDA_SUCCESS;
	return copy_async(dst, src, count, copy_ends(dst, src), stream);
}

static CUresult set(u64 ptr, size_t count, CUstream stream)
{
	if (!count)
		return CUDA_SUCCESS;
	return copy_check(ptr, ptr, count, COPY_DST)
		       ?: stream_submit(stream, TRUTH_WORK_MEMSET, copy_ns(count));
}

CUresult CU(MemsetD8Async)(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)
{
	return set(ptr, count, stream);
}

/* A memset is asynchronous to the host even without Async in its name. */
CUresult CU(MemsetD8_v2)(CUdeviceptr ptr, unsigned char value, size_t count)
{
	return set(ptr, count, NULL);
}
