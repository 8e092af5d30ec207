/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls that copy and set memory. */
#include <string.h>

#include "vgpu/engine.h"
#include "vgpu/per_thread.h"

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

static CUresult copy_wait(u64 dst, u64 src, size_t count, enum copy_ends ends, CUstream stream)
{
	if (!count)
		return CUDA_SUCCESS;
	return copy_check(dst, src, count, ends)
		       ?: stream_submit_wait(stream, TRUTH_WORK_COPY, copy_ns(count));
}

static CUresult copy_async(u64 dst, u64 src, size_t count, enum copy_ends ends, CUstream stream)
{
	if (!count)
		return CUDA_SUCCESS;
	return copy_check(dst, src, count, ends)
		       ?: stream_submit(stream, TRUTH_WORK_COPY, copy_ns(count));
}

DEFAULT_CALL(MemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t count), (dst, src, count))
{
	return copy_wait(dst, (u64)src, count, COPY_DST, stream);
}

DEFAULT_CALL(MemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t count), (dst, src, count))
{
	return copy_wait((u64)dst, src, count, COPY_SRC, stream);
}

DEFAULT_CALL(MemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t count), (dst, src, count))
{
	return copy_wait(dst, src, count, COPY_BOTH, stream);
}

STREAM_CALL(MemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t count, CUstream stream),
	    (dst, src, count, stream))
{
	return copy_async(dst, (u64)src, count, COPY_DST, stream);
}

STREAM_CALL(MemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t count, CUstream stream),
	    (dst, src, count, stream))
{
	return copy_async((u64)dst, src, count, COPY_SRC, stream);
}

STREAM_CALL(MemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),
	    (dst, src, count, stream))
{
	return copy_async(dst, src, count, COPY_BOTH, stream);
}

/* For copies whose direction depends on the pointers. Returns true if both are on the host and the
 * copy is done. */
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

DEFAULT_CALL(Memcpy, (CUdeviceptr dst, CUdeviceptr src, size_t count), (dst, src, count))
{
	if (copy_on_host(dst, src, count))
		return CUDA_SUCCESS;
	return copy_wait(dst, src, count, copy_ends(dst, src), stream);
}

STREAM_CALL(MemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),
	    (dst, src, count, stream))
{
	if (copy_on_host(dst, src, count))
		return CUDA_SUCCESS;
	return copy_async(dst, src, count, copy_ends(dst, src), stream);
}

/* One end of a rectangle of bytes. */
struct plane {
	int type;
	u64 host, device;
	size_t pitch, x, y;
};

static bool plane_is_valid(const struct plane *plane, size_t width, size_t height)
{
	u64 base = plane->type == CU_MEMORYTYPE_HOST ? plane->host : plane->device;
	size_t last;

	if (plane->type == CU_MEMORYTYPE_ARRAY || !base || plane->pitch < width ||
	    __builtin_mul_overflow(plane->pitch, plane->y + height - 1, &last))
		return false;
	return plane->type != CU_MEMORYTYPE_DEVICE || book_covers(base + plane->x, last + width);
}

STREAM_CALL(Memcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream), (copy, stream))
{
	struct plane src, dst;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	if (!copy->WidthInBytes || !copy->Height)
		return CUDA_SUCCESS;
	src = (struct plane){ copy->srcMemoryType, (u64)copy->srcHost, copy->srcDevice,
			      copy->srcPitch,	   copy->srcXInBytes,  copy->srcY };
	dst = (struct plane){ copy->dstMemoryType, (u64)copy->dstHost, copy->dstDevice,
			      copy->dstPitch,	   copy->dstXInBytes,  copy->dstY };
	if (!plane_is_valid(&src, copy->WidthInBytes, copy->Height) ||
	    !plane_is_valid(&dst, copy->WidthInBytes, copy->Height))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_submit(stream, TRUTH_WORK_COPY, copy_ns(copy->WidthInBytes * copy->Height));
}

static CUresult set(u64 ptr, size_t count, CUstream stream)
{
	if (!count)
		return CUDA_SUCCESS;
	return copy_check(ptr, ptr, count, COPY_DST)
		       ?: stream_submit(stream, TRUTH_WORK_MEMSET, copy_ns(count));
}

STREAM_CALL(MemsetD8Async, (CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream),
	    (ptr, value, count, stream))
{
	return set(ptr, count, stream);
}

/* A memset is asynchronous to the host even without Async in its name. */
DEFAULT_CALL(MemsetD8_v2, (CUdeviceptr ptr, unsigned char value, size_t count), (ptr, value, count))
{
	return set(ptr, count, stream);
}
