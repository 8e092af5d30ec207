/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Puts work on streams and computes its times. */
#include "vgpu/engine.h"

#include <stdlib.h>

/* The handle 1 also means the legacy default stream. */
#define STREAM_LEGACY ((CUstream)1)

CUresult stream_get(CUstream handle, struct CUstream_st **ret)
{
	struct CUctx_st *ctx;
	CUresult r = ctx_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!handle || handle == STREAM_LEGACY)
		handle = ctx->legacy;
	else if ((u64)handle < 4096 || !handle->object.live || handle->destroyed)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = handle;
	return CUDA_SUCCESS;
}

struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags)
{
	struct CUstream_st *stream =
		(struct CUstream_st *)object_new(&engine.streams, sizeof(*stream));

	if (stream) {
		stream->ctx = ctx;
		stream->flags = flags;
	}
	return stream;
}

void stream_free(struct CUstream_st *stream)
{
	/* Queued work still completes. */
	stream->destroyed = true;
	if (!stream->head)
		stream->object.live = false;
}

/* The handle by which the program knows the stream. */
static u64 stream_id(const struct CUstream_st *stream)
{
	return stream == stream->ctx->legacy ? 0 : (u64)stream;
}

static void busy(const struct CUstream_st *stream, enum truth_work work, u64 start_ns, u64 end_ns,
		 u64 seq)
{
	static const u32 kinds[] = {
		[TRUTH_WORK_COPY] = 1,
		[TRUTH_WORK_COLLECTIVE] = 2,
		[TRUTH_WORK_MEMSET] = 0,
	};
	u32 device = stream->ctx->device, kind = kinds[work];

	truth_log(engine.truth, TRUTH_BUSY, work, start_ns, end_ns, device, stream_id(stream), seq);
	shm_span_add(engine.shm, device, engine.proc, 1U << kind, start_ns, end_ns,
		     &engine.cursor[device][kind]);
}

/* Publishes for monitors since when a collective of this process waits for ranks. */
static void open_update(u32 device)
{
	u64 since = 0;

	for (struct object *o = engine.streams; o; o = o->next) {
		struct CUstream_st *stream = (struct CUstream_st *)o;
		struct op *op = o->live ? stream->head : NULL;

		if (op && op->arrival_ns && stream->ctx->device == device &&
		    (!since || op->arrival_ns < since))
			since = op->arrival_ns;
	}
	__atomic_store_n(&engine.shm->procs[engine.proc].open_since_ns[device], since,
			 __ATOMIC_RELAXED);
}

static void op_pop(struct CUstream_st *stream, u64 ready_ns)
{
	struct op *op = stream->head;

	stream->ready_ns = ready_ns;
	stream->head = op->next;
	if (!stream->head)
		stream->tail = NULL;
	engine.nr_pending--;
	op->node->end_ns = ready_ns;
	__atomic_store_n(&op->node->done, true, __ATOMIC_RELEASE);
	node_unref(op->node);
	node_unref(op->wait);
	if (op->kind == OP_EXTERNAL)
		open_update(stream->ctx->device);
	free(op);
	if (stream->destroyed && !stream->head)
		stream->object.live = false;
}

/* Sets the times of the head of the list, if they are known now. */
static bool op_resolve(struct CUstream_st *stream)
{
	struct op *op = stream->head;
	u64 start = max_u64(stream->ready_ns, op->queued_ns), end = start;

	switch (op->kind) {
	case OP_WAIT:
		if (op->wait && !op->wait->done)
			return false;
		end = max_u64(stream->ready_ns, op->duration_ns);
		end = max_u64(end, op->wait ? op->wait->end_ns : 0);
		break;
	case OP_WORK:
		end = start + op->duration_ns;
		busy(stream, op->work, start, end, op->seq);
		break;
	case OP_EXTERNAL:
		if (!op->arrival_ns) {
			op->arrival_ns = start;
			open_update(stream->ctx->device);
		}
		if (!op->poll(op->arg, op->arrival_ns, &end))
			return false;
		busy(stream, op->work, op->arrival_ns, end, op->seq);
		break;
	}
	op_pop(stream, end);
	return true;
}

void engine_progress(void)
{
	bool again = engine.nr_pending, any = false;

	/* Another stream may wait for the end of this one. */
	while (again) {
		again = false;
		for (struct object *o = engine.streams; o; o = o->next) {
			struct CUstream_st *stream = (struct CUstream_st *)o;

			while (o->live && stream->head && op_resolve(stream))
				again = true;
		}
		any |= again;
	}
	if (any)
		pthread_cond_broadcast(&engine.progressed);
}

static CUresult op_queue(struct CUstream_st *stream, struct op op)
{
	struct op *copy = malloc(sizeof(*copy));
	struct node *node = calloc(1, sizeof(*node));

	if (!copy || !node) {
		free(copy);
		free(node);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	node->refs = 1;
	*copy = op;
	copy->node = node;
	if (copy->wait)
		copy->wait->refs++;
	if (stream->tail)
		stream->tail->next = copy;
	else
		stream->head = copy;
	stream->tail = copy;
	engine.nr_pending++;
	return CUDA_SUCCESS;
}

void stream_join(struct CUstream_st *stream, struct target target)
{
	if (!target.node && !stream->head)
		stream->ready_ns = max_u64(stream->ready_ns, target.time_ns);
	else if (target.node || target.time_ns > stream->ready_ns)
		op_queue(stream, (struct op){ .kind = OP_WAIT,
					      .duration_ns = target.time_ns,
					      .wait = target.node });
}

void stream_join_legacy(struct CUstream_st *stream)
{
	struct CUctx_st *ctx = stream->ctx;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return;
	if (stream != ctx->legacy) {
		stream_join(stream, stream_target(ctx->legacy));
		return;
	}
	for (struct object *o = engine.streams; o; o = o->next) {
		struct CUstream_st *other = (struct CUstream_st *)o;

		if (o->live && other->ctx == ctx && other != stream &&
		    !(other->flags & CU_STREAM_NON_BLOCKING))
			stream_join(stream, stream_target(other));
	}
}

/* Lets a caller wait for queued work, or log the call. */
struct ticket {
	u64 seq; /* 0: captured into a graph, not queued */
	const struct CUstream_st *stream;
	struct target target;
};

/* With `hold`, the caller must wait for the ticket's target, which releases it. */
static CUresult submit(CUstream handle, struct op op, bool hold, struct ticket *ret)
{
	struct CUstream_st *stream;
	CUresult r = stream_get(handle, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	if (stream->capturing) {
		if (op.kind == OP_EXTERNAL)
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		stream->captured_ns += op.duration_ns;
		*ret = (struct ticket){};
		return CUDA_SUCCESS;
	}
	engine_progress();
	stream_join_legacy(stream);
	op.queued_ns = truth_now_ns();
	op.seq = engine.seq + 1;
	if (op.kind == OP_WORK && !stream->head) {
		u64 start = max_u64(op.queued_ns, stream->ready_ns);

		stream->ready_ns = start + op.duration_ns;
		busy(stream, op.work, start, stream->ready_ns, op.seq);
	} else {
		r = op_queue(stream, op);
		if (r != CUDA_SUCCESS)
			return r;
		engine_progress();
	}
	engine.seq++;
	*ret = (struct ticket){ .seq = op.seq, .stream = stream };
	if (hold)
		ret->target = target_hold(stream_target(stream));
	return CUDA_SUCCESS;
}

static void launch_log(const struct ticket *ticket, enum truth_work work, u64 entry_ns)
{
	if (ticket->seq)
		truth_log(engine.truth, TRUTH_LAUNCH, work, entry_ns, truth_now_ns(),
			  ticket->stream->ctx->device, stream_id(ticket->stream), ticket->seq);
}

CUresult stream_submit(CUstream handle, enum truth_work work, u64 duration_ns)
{
	struct op op = { .kind = OP_WORK, .work = work, .duration_ns = duration_ns };
	u64 entry = truth_now_ns();
	struct ticket ticket;
	CUresult r = submit(handle, op, false, &ticket);

	/* Simulates the time that a driver needs to submit work to its device. */
	while (work == TRUTH_WORK_KERNEL && engine.launch_ns &&
	       truth_now_ns() < entry + engine.launch_ns)
		;
	if (r == CUDA_SUCCESS)
		launch_log(&ticket, work, entry);
	return r;
}

CUresult stream_submit_wait(enum truth_work work, u64 duration_ns)
{
	struct op op = { .kind = OP_WORK, .work = work, .duration_ns = duration_ns };
	u64 entry = truth_now_ns();
	struct ticket ticket;
	CUresult r = submit(NULL, op, true, &ticket);

	if (r != CUDA_SUCCESS)
		return r;
	target_wait(&ticket.target, ticket.stream->ctx->flags);
	launch_log(&ticket, work, entry);
	return CUDA_SUCCESS;
}

CUresult stream_submit_external(CUstream handle, external_poll poll, void *arg, u64 entry_ns)
{
	struct op op = {
		.kind = OP_EXTERNAL, .work = TRUTH_WORK_COLLECTIVE, .poll = poll, .arg = arg
	};
	struct ticket ticket;
	CUresult r = submit(handle, op, false, &ticket);

	if (r == CUDA_SUCCESS)
		launch_log(&ticket, op.work, entry_ns);
	return r;
}
