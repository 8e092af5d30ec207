/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vgpu/engine.h"

#define CTX_STACK 32

static _Thread_local struct {
	struct CUctx_st *stack[CTX_STACK];
	u32 depth;
} current;

struct CUctx_st *ctx_peek(void)
{
	return current.depth ? current.stack[current.depth - 1] : NULL;
}

CUresult ctx_current(struct CUctx_st **ret)
{
	struct CUctx_st *ctx = ctx_peek();

	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ctx || !ctx->object.live)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = ctx;
	return CUDA_SUCCESS;
}

CUresult ctx_push(struct CUctx_st *ctx)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ctx || !ctx->object.live)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current.depth == CTX_STACK)
		return CUDA_ERROR_INVALID_VALUE;
	current.stack[current.depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult ctx_pop(struct CUctx_st **ret)
{
	if (!current.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = current.stack[--current.depth];
	return CUDA_SUCCESS;
}

CUresult ctx_set(struct CUctx_st *ctx)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ctx && !ctx->object.live)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current.depth)
		current.depth--;
	return ctx ? ctx_push(ctx) : CUDA_SUCCESS;
}

/* The caller holds the lock of the engine. */
static CUresult ctx_open(struct CUctx_st *ctx)
{
	ctx->object.live = true;
	ctx->legacy = stream_new(ctx, 0);
	if (!ctx->legacy) {
		ctx->object.live = false;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	engine.shm->procs[engine.proc].slice[ctx->device] = engine.slice;
	__atomic_fetch_add(&engine.shm->procs[engine.proc].contexts[ctx->device], 1,
			   __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult ctx_new(CUdevice ordinal, unsigned int flags, struct CUctx_st **ret)
{
	struct CUctx_st *ctx;
	CUresult r = device_check(ordinal);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	ctx = (struct CUctx_st *)object_new(&engine.ctxs, sizeof(*ctx));
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->device = engine.visible[ordinal];
	ctx->ordinal = ordinal;
	ctx->flags = flags;
	r = ctx_open(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	ctx->refs = 1;
	*ret = ctx;
	return CUDA_SUCCESS;
}

CUresult ctx_retain(CUdevice ordinal, struct CUctx_st **ret)
{
	struct CUctx_st *ctx;
	CUresult r = device_check(ordinal);

	if (r != CUDA_SUCCESS)
		return r;
	ENGINE_LOCKED();
	ctx = &engine.primary[ordinal];
	if (!ctx->object.live)
		r = ctx_open(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	ctx->refs++;
	*ret = ctx;
	return CUDA_SUCCESS;
}

/* The caller holds the lock of the engine. */
static void ctx_close(struct CUctx_st *ctx)
{
	for (struct object *o = engine.streams; o; o = o->next)
		if (o->live && ((struct CUstream_st *)o)->ctx == ctx)
			stream_free((struct CUstream_st *)o);
	for (struct object *o = engine.events; o; o = o->next) {
		struct CUevent_st *event = (struct CUevent_st *)o;

		if (!o->live || event->ctx != ctx)
			continue;
		node_unref(event->target.node);
		o->live = false;
	}
	ctx->object.live = false;
	__atomic_fetch_sub(&engine.shm->procs[engine.proc].contexts[ctx->device], 1,
			   __ATOMIC_RELAXED);
}

CUresult ctx_release(struct CUctx_st *ctx, bool reset)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ctx || !(ctx->object.live || ctx->refs))
		return CUDA_ERROR_INVALID_CONTEXT;
	/* A reset does not release: a caller that retained the context must still release it. */
	if (!reset) {
		ENGINE_LOCKED();

		if (--ctx->refs || !ctx->object.live)
			return CUDA_SUCCESS;
	}
	ctx_drain(ctx);
	book_drop(ctx);
	ENGINE_LOCKED();
	ctx_close(ctx);
	return CUDA_SUCCESS;
}
