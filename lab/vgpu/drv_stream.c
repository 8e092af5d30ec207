/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls on streams and captures. */
#include "vgpu/engine.h"
#include "vgpu/per_thread.h"

CUresult CU(StreamCreate)(CUstream *stream, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !stream || flags > CU_STREAM_NON_BLOCKING)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	*stream = stream_new(ctx, flags);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CU(StreamDestroy_v2)(CUstream stream)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS || found == found->ctx->legacy || found->owner)
		return r ?: CUDA_ERROR_INVALID_HANDLE;
	ENGINE_LOCKED();
	stream_free(found);
	return CUDA_SUCCESS;
}

STREAM_CALL(StreamSynchronize, (CUstream stream), (stream))
{
	return stream_sync(stream);
}

STREAM_CALL(StreamQuery, (CUstream stream), (stream))
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	if (found->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	engine_progress();
	r = stream_join_legacy(found);
	if (r != CUDA_SUCCESS)
		return r;
	return target_reached(stream_target(found)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

STREAM_CALL(StreamBeginCapture_v2, (CUstream stream, int mode), (stream, mode))
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	return capture_begin(found);
}

STREAM_CALL(StreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph))
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS || !graph)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	return capture_end(found, graph);
}

STREAM_CALL(StreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), (stream, status))
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS || !status)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	*status = found->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}
