/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Streams: their handles, their life, and how they wait for each other. */
#include "vgpu/engine.h"

#include <unistd.h>

/* The default stream of a thread lives as long as its context. */
static CUresult stream_of_thread(struct CUctx_st *ctx, struct CUstream_st **ret)
{
	static _Thread_local struct CUstream_st *cached;
	u64 owner = (u64)gettid();

	ENGINE_LOCKED();
	if (!cached || !cached->object.live || cached->ctx != ctx || cached->owner != owner) {
		cached = NULL;
		for (struct object *o = engine.streams; o && !cached; o = o->next) {
			struct CUstream_st *stream = (struct CUstream_st *)o;

			if (o->live && stream->ctx == ctx && stream->owner == owner &&
			    !stream->destroyed)
				cached = stream;
		}
	}
	if (!cached) {
		cached = stream_new(ctx, 0);
		if (!cached)
			return CUDA_ERROR_OUT_OF_MEMORY;
		cached->owner = owner;
	}
	*ret = cached;
	return CUDA_SUCCESS;
}

CUresult stream_get(CUstream handle, struct CUstream_st **ret)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (handle == CU_STREAM_PER_THREAD)
		return stream_of_thread(ctx, ret);
	if (!handle || handle == CU_STREAM_LEGACY)
		handle = ctx->legacy;
	else if ((u64)handle < 4096 || !handle->object.live || handle->destroyed || handle->owner)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = handle;
	return CUDA_SUCCESS;
}

u64 stream_id(const struct CUstream_st *stream)
{
	return stream == stream->ctx->legacy ? 0 : (u64)stream;
}

struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags)
{
	struct CUstream_st *stream = (struct CUstream_st *)object_new(
		&engine.streams, sizeof(*stream) + engine.queue * sizeof(stream->queue[0]));

	if (stream) {
		stream->ctx = ctx;
		stream->flags = flags;
	}
	return stream;
}

void stream_retire(struct CUstream_st *stream)
{
	for (u32 i = 0; i < engine.queue; i++)
		node_unref(stream->queue[i].node);
	stream->object.live = false;
}

void stream_free(struct CUstream_st *stream)
{
	/* Queued work still completes. */
	stream->destroyed = true;
	if (!stream->head)
		stream_retire(stream);
}

CUresult stream_join(struct CUstream_st *stream, struct target target)
{
	if (!target.node && !stream->head) {
		stream->ready_ns = max_u64(stream->ready_ns, target.time_ns);
		return CUDA_SUCCESS;
	}
	if (!target.node && target.time_ns <= stream->ready_ns)
		return CUDA_SUCCESS;
	return work_queue(
		stream,
		(struct op){ .kind = OP_WAIT, .duration_ns = target.time_ns, .wait = target.node });
}

CUresult stream_join_legacy(struct CUstream_st *stream)
{
	struct CUctx_st *ctx = stream->ctx;
	CUresult r = CUDA_SUCCESS;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return CUDA_SUCCESS;
	if (stream != ctx->legacy)
		return stream_join(stream, stream_target(ctx->legacy));
	for (struct object *o = engine.streams; o && r == CUDA_SUCCESS; o = o->next) {
		struct CUstream_st *other = (struct CUstream_st *)o;

		if (o->live && other->ctx == ctx && other != stream &&
		    !(other->flags & CU_STREAM_NON_BLOCKING))
			r = stream_join(stream, stream_target(other));
	}
	return r;
}
