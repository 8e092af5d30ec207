/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Puts work on streams and computes its times. */
#include "vgpu/engine.h"

#include <stdlib.h>

static void busy(const struct CUstream_st *stream, const struct op *op, u64 start_ns, u64 end_ns)
{
	static const u32 kinds[] = {
		[TRUTH_WORK_KERNEL] = SHM_SPAN_COMPUTE,
		[TRUTH_WORK_COPY] = SHM_SPAN_COPY,
		[TRUTH_WORK_COLLECTIVE] = SHM_SPAN_COLLECTIVE,
		[TRUTH_WORK_MEMSET] = SHM_SPAN_COMPUTE,
	};
	u32 device = stream->ctx->device, kind = kinds[op->work];
	u32 percent = kind == SHM_SPAN_COMPUTE	    ? engine.sm_percent
		      : kind == SHM_SPAN_COLLECTIVE ? SHM_COLLECTIVE_SM_PERCENT
						    : 0;

	truth_log(engine.truth, TRUTH_BUSY, op->work, start_ns, end_ns, device, op->stream,
		  op->seq);
	shm_span_add(engine.shm, device, engine.proc, kind, percent, start_ns, end_ns,
		     &engine.cursor[device][__builtin_ctz(kind)]);
}

static bool waits_for_ranks(const struct op *op)
{
	return op && op->kind == OP_EXTERNAL && op->external->on_device && op->arrival_ns;
}

/* Publishes for monitors since when a collective of this process waits for ranks. */
static void open_update(u32 device)
{
	u64 since = 0;

	for (struct object *o = engine.streams; o; o = o->next) {
		struct CUstream_st *stream = (struct CUstream_st *)o;
		struct op *op = o->live ? stream->head : NULL;

		if (waits_for_ranks(op) && stream->ctx->device == device &&
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
		stream_retire(stream);
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
		busy(stream, op, start, end);
		break;
	case OP_EXTERNAL:
		if (!op->arrival_ns) {
			op->arrival_ns = start;
			open_update(stream->ctx->device);
		}
		if (!op->external->poll(op->arg, op->arrival_ns, &end))
			return false;
		if (op->external->on_device)
			busy(stream, op, op->arrival_ns, end);
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

CUresult work_queue(struct CUstream_st *stream, struct op op)
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

CUresult work_put(struct CUstream_st *stream, struct op op)
{
	CUresult r;

	if (op.kind == OP_WORK && !stream->head) {
		u64 start = max_u64(op.queued_ns, stream->ready_ns);

		stream->ready_ns = start + op.duration_ns;
		busy(stream, &op, start, stream->ready_ns);
		return CUDA_SUCCESS;
	}
	r = work_queue(stream, op);
	if (r != CUDA_SUCCESS)
		return r;
	if (op.kind == OP_EXTERNAL)
		op.external->start(op.arg);
	engine_progress();
	return CUDA_SUCCESS;
}
