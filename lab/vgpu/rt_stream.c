/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The runtime's streams, events, captures and graphs; see rt.c. */
#include "vgpu/per_thread.h"

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

RUNTIME_CALL(StreamSynchronize, _ptsz, (RT(Stream_t) stream), (stream))
{
	return rt_result(rt_enter() ?: DRIVER(StreamSynchronize, _ptsz)(stream));
}

RUNTIME_CALL(StreamQuery, _ptsz, (RT(Stream_t) stream), (stream))
{
	return rt_result(rt_enter() ?: DRIVER(StreamQuery, _ptsz)(stream));
}

RUNTIME_CALL(StreamWaitEvent, _ptsz, (RT(Stream_t) stream, RT(Event_t) event, unsigned int flags),
	     (stream, event, flags))
{
	return rt_result(rt_enter() ?: DRIVER(StreamWaitEvent, _ptsz)(stream, event, flags));
}

RT(Error_t) RT(EventCreate)(RT(Event_t) * event)
{
	return rt_result(rt_enter() ?: CU(EventCreate)(event, 0));
}

RT(Error_t) RT(EventCreateWithFlags)(RT(Event_t) * event, unsigned int flags)
{
	return rt_result(rt_enter() ?: CU(EventCreate)(event, flags));
}

RUNTIME_CALL(EventRecord, _ptsz, (RT(Event_t) event, RT(Stream_t) stream), (event, stream))
{
	return rt_result(rt_enter() ?: DRIVER(EventRecord, _ptsz)(event, stream));
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

RUNTIME_CALL(StreamBeginCapture, _ptsz, (RT(Stream_t) stream, enum RT(StreamCaptureMode) mode),
	     (stream, mode))
{
	return rt_result(rt_enter() ?: DRIVER(StreamBeginCapture_v2, _ptsz)(stream, (int)mode));
}

RUNTIME_CALL(StreamEndCapture, _ptsz, (RT(Stream_t) stream, RT(Graph_t) * graph), (stream, graph))
{
	return rt_result(rt_enter() ?: DRIVER(StreamEndCapture, _ptsz)(stream, graph));
}

RUNTIME_CALL(StreamIsCapturing, _ptsz, (RT(Stream_t) stream, enum RT(StreamCaptureStatus) * status),
	     (stream, status))
{
	CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult r = status ? rt_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r == CUDA_SUCCESS)
		r = DRIVER(StreamIsCapturing, _ptsz)(stream, &found);
	if (r == CUDA_SUCCESS)
		*status = (enum RT(StreamCaptureStatus))found;
	return rt_result(r);
}

RT(Error_t)
RT(GraphInstantiateWithFlags)(RT(GraphExec_t) * exec, RT(Graph_t) graph, unsigned long long flags)
{
	return rt_result(rt_enter() ?: CU(GraphInstantiateWithFlags)(exec, graph, flags));
}

RUNTIME_CALL(GraphLaunch, _ptsz, (RT(GraphExec_t) exec, RT(Stream_t) stream), (exec, stream))
{
	return rt_result(rt_enter() ?: DRIVER(GraphLaunch, _ptsz)(exec, stream));
}

RT(Error_t) RT(GraphExecDestroy)(RT(GraphExec_t) exec)
{
	return rt_result(CU(GraphExecDestroy)(exec));
}

RT(Error_t) RT(GraphDestroy)(RT(Graph_t) graph)
{
	return rt_result(CU(GraphDestroy)(graph));
}
