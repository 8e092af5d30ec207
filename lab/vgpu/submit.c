/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The calls that give work to a stream: the launch queue, and the log of the calls. */
#include "vgpu/engine.h"

/* What a caller needs to wait for its work, and to log the call. */
struct ticket {
	u64 seq;		  /* 0: captured into a graph, or nothing for the device to do */
	u64 blocked_ns, freed_ns; /* the queue was full in this time; 0: it was not */
	struct CUstream_st *stream;
	struct target target;
};

/*
 * Returns with the engine locked and room in the queue of the stream. Like a real
 * driver, which polls for the progress of its device, the caller spins meanwhile,
 * whatever the flags of the context are.
 */
static void queue_enter(struct CUstream_st *stream, struct ticket *ticket)
{
	pthread_mutex_lock(&engine.lock);
	while (!stream->capture) {
		struct target oldest;

		engine_progress();
		oldest = stream->queue[stream->nr_launched % engine.queue];
		if (target_reached(oldest))
			return;
		oldest = target_hold(oldest);
		pthread_mutex_unlock(&engine.lock);
		if (!ticket->blocked_ns)
			ticket->blocked_ns = truth_now_ns();
		target_wait(&oldest, CU_CTX_SCHED_SPIN);
		ticket->freed_ns = truth_now_ns();
		pthread_mutex_lock(&engine.lock);
	}
}

static void queue_add(struct CUstream_st *stream)
{
	struct target *entry = &stream->queue[stream->nr_launched++ % engine.queue];

	node_unref(entry->node);
	*entry = target_hold(stream_target(stream));
}

/* With `hold`, the caller must wait for the ticket's target, which releases it. */
static CUresult put(struct op op, bool hold, struct ticket *ticket)
{
	struct CUstream_st *stream = ticket->stream;
	CUresult r;

	if (stream->capture)
		return hold ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : capture_add(stream, &op);
	op.stream = stream_id(stream);
	op.seq = engine.seq + 1;
	op.queued_ns = truth_now_ns();
	r = stream_join_legacy(stream) ?: work_put(stream, op);
	if (r != CUDA_SUCCESS)
		return r;
	if (op.kind == OP_WORK || op.external->on_device)
		ticket->seq = ++engine.seq;
	queue_add(stream);
	if (hold)
		ticket->target = target_hold(stream_target(stream));
	return CUDA_SUCCESS;
}

static CUresult submit(CUstream handle, struct op op, bool hold, struct ticket *ret)
{
	CUresult r;

	*ret = (struct ticket){};
	r = stream_get(handle, &ret->stream);
	if (r != CUDA_SUCCESS)
		return r;
	queue_enter(ret->stream, ret);
	r = put(op, hold, ret);
	pthread_mutex_unlock(&engine.lock);
	return r;
}

static void launch_log(const struct ticket *ticket, enum truth_work work, u64 entry_ns)
{
	u32 device = ticket->stream->ctx->device;
	u64 id = stream_id(ticket->stream);

	if (!ticket->seq)
		return;
	if (ticket->blocked_ns)
		truth_log(engine.truth, TRUTH_BLOCKED, work, ticket->blocked_ns, ticket->freed_ns,
			  device, id, ticket->seq);
	truth_log(engine.truth, TRUTH_LAUNCH, work, entry_ns, truth_now_ns(), device, id,
		  ticket->seq);
}

/* Simulates the time that a driver needs to submit work to its device. */
static void launch_delay(u64 entry_ns)
{
	while (engine.launch_ns && truth_now_ns() < entry_ns + engine.launch_ns)
		;
}

CUresult stream_submit(CUstream handle, enum truth_work work, u64 duration_ns)
{
	struct op op = { .kind = OP_WORK, .work = work, .duration_ns = duration_ns };
	u64 entry = truth_now_ns();
	struct ticket ticket;
	CUresult r = submit(handle, op, false, &ticket);

	if (work == TRUTH_WORK_KERNEL)
		launch_delay(entry);
	if (r == CUDA_SUCCESS)
		launch_log(&ticket, work, entry);
	return r;
}

CUresult stream_submit_wait(CUstream handle, enum truth_work work, u64 duration_ns)
{
	struct op op = { .kind = OP_WORK, .work = work, .duration_ns = duration_ns };
	u64 entry = truth_now_ns();
	struct ticket ticket;
	CUresult r = submit(handle, op, true, &ticket);

	if (r != CUDA_SUCCESS)
		return r;
	target_wait(&ticket.target, ticket.stream->ctx->flags);
	launch_log(&ticket, work, entry);
	return CUDA_SUCCESS;
}

CUresult stream_submit_external(CUstream handle, const struct external *external, void *arg,
				u64 entry_ns)
{
	struct op op = {
		.kind = OP_EXTERNAL, .work = TRUTH_WORK_COLLECTIVE, .external = external, .arg = arg
	};
	struct ticket ticket;
	CUresult r = submit(handle, op, false, &ticket);

	if (r == CUDA_SUCCESS)
		launch_log(&ticket, op.work, entry_ns);
	return r;
}

static CUresult put_graph(struct CUgraphExec_st *exec, struct ticket *ticket, u64 entry_ns)
{
	struct CUstream_st *stream = ticket->stream;
	CUresult r;

	/* A graph inside a graph is not part of this GPU. */
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (graph_has_work(exec))
		ticket->seq = ++engine.seq;
	r = stream_join_legacy(stream) ?: graph_replay(exec, stream, ticket->seq, entry_ns);
	queue_add(stream);
	return r;
}

CUresult stream_launch_graph(CUstream handle, struct CUgraphExec_st *exec)
{
	u64 entry = truth_now_ns();
	struct ticket ticket = {};
	CUresult r = stream_get(handle, &ticket.stream);

	if (r != CUDA_SUCCESS)
		return r;
	queue_enter(ticket.stream, &ticket);
	r = put_graph(exec, &ticket, entry);
	pthread_mutex_unlock(&engine.lock);
	launch_delay(entry);
	if (r == CUDA_SUCCESS)
		launch_log(&ticket, TRUTH_WORK_GRAPH, entry);
	return r;
}
