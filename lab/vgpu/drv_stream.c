/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls on modules, launches, streams, events and graphs. */
#include <stdlib.h>
#include <string.h>

#include "vgpu/engine.h"

static struct CUfunc_st functions[] = { { .busy = false }, { .busy = true } };

struct CUmod_st {
	u8 unused;
};

CUresult CU(ModuleLoadData)(CUmodule *module, const void *image)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !module || !image)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	*module = calloc(1, sizeof(**module));
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CU(ModuleGetFunction)(CUfunction *function, CUmodule module, const char *name)
{
	if (!function || !module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!*name)
		return CUDA_ERROR_NOT_FOUND;
	*function = &functions[strcmp(name, "busy") == 0];
	return CUDA_SUCCESS;
}

CUresult CU(ModuleUnload)(CUmodule module)
{
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	free(module);
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, u64 threads, CUstream stream, void **params)
{
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!threads || (function->busy && (!params || !params[0])))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_submit(stream, TRUTH_WORK_KERNEL,
			     function->busy ? *(const u64 *)params[0] : engine.kernel_ns);
}

CUresult CU(LaunchKernel)(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			  unsigned int block_z, unsigned int shared, CUstream stream, void **params,
			  void **extra)
{
	return launch(function, grid_x && grid_y && grid_z && block_x && block_y && block_z, stream,
		      params);
}

CUresult CU(LaunchKernelEx)(const CUlaunchConfig *config, CUfunction function, void **params,
			    void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(function,
		      config->gridDimX && config->gridDimY && config->gridDimZ &&
			      config->blockDimX && config->blockDimY && config->blockDimZ,
		      config->hStream, params);
}

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

	if (r != CUDA_SUCCESS || found == found->ctx->legacy)
		return r ?: CUDA_ERROR_INVALID_HANDLE;
	ENGINE_LOCKED();
	stream_free(found);
	return CUDA_SUCCESS;
}

CUresult CU(StreamSynchronize)(CUstream stream)
{
	return stream_sync(stream);
}

CUresult CU(StreamQuery)(CUstream stream)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	engine_progress();
	stream_join_legacy(found);
	return target_reached(stream_target(found)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult event_check(const struct CUevent_st *event)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	return event && event->object.live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CU(StreamWaitEvent)(CUstream stream, CUevent event, unsigned int flags)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found) ?: event_check(event);

	if (r != CUDA_SUCCESS || flags)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	if (event->recorded)
		stream_join(found, event->target);
	return CUDA_SUCCESS;
}

CUresult CU(EventCreate)(CUevent *event, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS || !event || flags > 7)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	*event = (CUevent)object_new(&engine.events, sizeof(**event));
	if (!*event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*event)->ctx = ctx;
	(*event)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult CU(EventRecord)(CUevent event, CUstream stream)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found) ?: event_check(event);

	if (r != CUDA_SUCCESS)
		return r;
	if (event->ctx != found->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	ENGINE_LOCKED();
	stream_join_legacy(found);
	node_unref(event->target.node);
	event->target = target_hold(stream_target(found));
	event->target.time_ns = max_u64(event->target.time_ns, truth_now_ns());
	event->stream = (u64)stream;
	event->recorded = true;
	return CUDA_SUCCESS;
}

CUresult CU(EventQuery)(CUevent event)
{
	CUresult r = event_check(event);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	engine_progress();
	return target_reached(event->target) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CU(EventSynchronize)(CUevent event)
{
	return event_check(event) ?: event_sync(event);
}

static u64 event_time_ns(const struct CUevent_st *event)
{
	return max_u64(event->target.time_ns, event->target.node ? event->target.node->end_ns : 0);
}

CUresult CU(EventElapsedTime)(float *ms, CUevent start, CUevent end)
{
	CUresult r = event_check(start) ?: event_check(end);

	if (r != CUDA_SUCCESS || !ms)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	engine_progress();
	if (!start->recorded || !end->recorded ||
	    (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!target_reached(start->target) || !target_reached(end->target))
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)(s64)(event_time_ns(end) - event_time_ns(start)) / 1e6);
	return CUDA_SUCCESS;
}

CUresult CU(EventDestroy_v2)(CUevent event)
{
	CUresult r = event_check(event);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	node_unref(event->target.node);
	event->object.live = false;
	return CUDA_SUCCESS;
}

CUresult CU(StreamBeginCapture_v2)(CUstream stream, int mode)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	if (found == found->ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (found->capturing)
		return CUDA_ERROR_ILLEGAL_STATE;
	found->capturing = true;
	found->captured_ns = 0;
	return CUDA_SUCCESS;
}

CUresult CU(StreamEndCapture)(CUstream stream, CUgraph *graph)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found);

	if (r != CUDA_SUCCESS || !graph)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	if (!found->capturing)
		return CUDA_ERROR_ILLEGAL_STATE;
	found->capturing = false;
	*graph = malloc(sizeof(**graph));
	if (!*graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*graph)->duration_ns = found->captured_ns;
	return CUDA_SUCCESS;
}

CUresult CU(GraphInstantiateWithFlags)(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	*exec = malloc(sizeof(**exec));
	if (!*exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*exec)->duration_ns = graph->duration_ns;
	return CUDA_SUCCESS;
}

CUresult CU(GraphLaunch)(CUgraphExec exec, CUstream stream)
{
	return exec ? stream_submit(stream, TRUTH_WORK_KERNEL, exec->duration_ns)
		    : CUDA_ERROR_INVALID_VALUE;
}

CUresult CU(GraphExecDestroy)(CUgraphExec exec)
{
	free(exec);
	return CUDA_SUCCESS;
}

CUresult CU(GraphDestroy)(CUgraph graph)
{
	free(graph);
	return CUDA_SUCCESS;
}
