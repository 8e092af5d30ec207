/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vgpu/ops.h"

const struct engine_variant engine_variant = {
#ifdef VGPU_HIP
	.truth_writer = "vgpu-hip",
	.visible_env = "HIP_VISIBLE_DEVICES",
#else
	.truth_writer = "vgpu",
	.visible_env = "CUDA_VISIBLE_DEVICES",
#endif
};

static CUresult ops_enter(int *ret_ordinal)
{
	struct CUctx_st *ctx;
	CUresult r = engine_init();

	if (r != CUDA_SUCCESS)
		return r;
	*ret_ordinal = ctx_current(&ctx) == CUDA_SUCCESS ? ctx->ordinal : 0;
	return CUDA_SUCCESS;
}

static struct shm *ops_shm(void)
{
	return engine.shm;
}

static struct truth *ops_truth(void)
{
	return engine.truth;
}

static void ops_lock(void)
{
	pthread_mutex_lock(&engine.lock);
}

static void ops_unlock(void)
{
	pthread_mutex_unlock(&engine.lock);
}

static void ops_sleep(pthread_cond_t *cond)
{
	pthread_cond_wait(cond, &engine.lock);
}

static CUresult ops_submit(int ordinal, CUstream stream, const struct external *external, void *arg,
			   u64 entry_ns)
{
	struct CUctx_st *ctx, *popped;
	CUresult r = ctx_retain(ordinal, &ctx) ?: ctx_push(ctx);

	if (r != CUDA_SUCCESS)
		return r;
	r = stream_submit_external(stream, external, arg, entry_ns);
	ctx_pop(&popped);
	/* Drop the reference for the push, but never the last one of the program. */
	if (ctx->refs > 1)
		ctx_release(ctx, false);
	return r;
}

const struct vgpu_ops VGPU_OPS = {
	.enter = ops_enter,
	.shm = ops_shm,
	.truth = ops_truth,
	.lock = ops_lock,
	.unlock = ops_unlock,
	.progress = engine_progress,
	.sleep = ops_sleep,
	.submit = ops_submit,
};
