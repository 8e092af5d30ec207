/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Driver calls on events. */
#include "vgpu/engine.h"
#include "vgpu/per_thread.h"

static CUresult event_check(const struct CUevent_st *event)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	return event && event->object.live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

STREAM_CALL(StreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
	    (stream, event, flags))
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found) ?: event_check(event);

	if (r != CUDA_SUCCESS || flags > CU_EVENT_WAIT_EXTERNAL)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	ENGINE_LOCKED();
	if (found->capture || event->capture)
		return capture_wait(found, event);
	return event->recorded ? stream_join(found, event->target) : CUDA_SUCCESS;
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

static CUresult record(struct CUevent_st *event, CUstream stream, unsigned int flags)
{
	struct CUstream_st *found;
	CUresult r = stream_get(stream, &found) ?: event_check(event);

	if (r != CUDA_SUCCESS || flags > CU_EVENT_RECORD_EXTERNAL)
		return r ?: CUDA_ERROR_INVALID_VALUE;
	if (event->ctx != found->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	ENGINE_LOCKED();
	if (found->capture) {
		capture_record(found, event);
		return CUDA_SUCCESS;
	}
	r = stream_join_legacy(found);
	if (r != CUDA_SUCCESS)
		return r;
	node_unref(event->target.node);
	event->target = target_hold(stream_target(found));
	event->target.time_ns = max_u64(event->target.time_ns, truth_now_ns());
	event->stream = stream_id(found);
	event->recorded = true;
	event->capture = 0;
	return CUDA_SUCCESS;
}

STREAM_CALL(EventRecord, (CUevent event, CUstream stream), (event, stream))
{
	return record(event, stream, 0);
}

STREAM_CALL(EventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
	    (event, stream, flags))
{
	return record(event, stream, flags);
}

CUresult CU(EventQuery)(CUevent event)
{
	CUresult r = event_check(event);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	if (event->capture)
		return CUDA_ERROR_CAPTURED_EVENT;
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
