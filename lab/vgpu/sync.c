/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Waits for device time: by spinning, yielding or sleeping. */
#include "vgpu/engine.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum wait_mode { WAIT_SPIN, WAIT_YIELD, WAIT_BLOCK };

static enum wait_mode wait_mode(unsigned int flags)
{
	switch (flags & CU_CTX_SCHED_MASK) {
	case CU_CTX_SCHED_YIELD: return WAIT_YIELD;
	case CU_CTX_SCHED_BLOCKING_SYNC: return WAIT_BLOCK;
	default: return WAIT_SPIN;
	}
}

static void relax(enum wait_mode mode)
{
	if (mode == WAIT_YIELD)
		sched_yield();
#if defined(__x86_64__)
	else
		__builtin_ia32_pause();
#endif
}

void node_unref(struct node *node)
{
	if (node && !--node->refs)
		free(node);
}

struct target target_hold(struct target target)
{
	if (target.node)
		target.node->refs++;
	return target;
}

struct target stream_target(const struct CUstream_st *stream)
{
	return (struct target){ stream->ready_ns, stream->tail ? stream->tail->node : NULL };
}

bool target_reached(struct target target)
{
	u64 now = truth_now_ns();

	if (target.node && (!target.node->done || target.node->end_ns > now))
		return false;
	return target.time_ns <= now;
}

static void sleep_until(u64 time_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(time_ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(time_ns % NSEC_PER_SEC) };

	while (truth_now_ns() < time_ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Waits until the end of the work is known. A waiter that does not sleep also makes progress. */
static void node_wait(const struct node *node, enum wait_mode mode)
{
	while (!__atomic_load_n(&node->done, __ATOMIC_ACQUIRE)) {
		if (mode == WAIT_BLOCK) {
			ENGINE_LOCKED();

			if (!node->done)
				pthread_cond_wait(&engine.progressed, &engine.lock);
		} else if (pthread_mutex_trylock(&engine.lock) == 0) {
			engine_progress();
			pthread_mutex_unlock(&engine.lock);
			relax(mode);
		}
	}
}

void target_wait(struct target *target, unsigned int flags)
{
	enum wait_mode mode = wait_mode(flags);

	if (target->node) {
		node_wait(target->node, mode);
		target->time_ns = max_u64(target->time_ns, target->node->end_ns);
		ENGINE_LOCKED();
		node_unref(target->node);
		target->node = NULL;
	}
	if (mode == WAIT_BLOCK)
		sleep_until(target->time_ns);
	while (truth_now_ns() < target->time_ns)
		relax(mode);
}

static void sync_log(u64 entry_ns, u32 device, u64 stream)
{
	truth_log(engine.truth, TRUTH_SYNC, 0, entry_ns, truth_now_ns(), device, stream, 0);
}

/* The current ends of the streams of a context; work that is queued later is not included. */
static struct target *ctx_targets(const struct CUctx_st *ctx, u32 *ret_nr)
{
	struct target *targets;
	u32 room = 0, nr = 0;

	ENGINE_LOCKED();
	for (struct object *o = engine.streams; o; o = o->next)
		room++;
	targets = calloc(room, sizeof(*targets));
	for (struct object *o = engine.streams; targets && o; o = o->next) {
		const struct CUstream_st *stream = (struct CUstream_st *)o;

		if (o->live && stream->ctx == ctx)
			targets[nr++] = target_hold(stream_target(stream));
	}
	*ret_nr = nr;
	return targets;
}

CUresult ctx_drain(struct CUctx_st *ctx)
{
	u32 nr;
	struct target *targets = ctx_targets(ctx, &nr);

	if (!targets)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (u32 i = 0; i < nr; i++)
		target_wait(&targets[i], ctx->flags);
	free(targets);
	return CUDA_SUCCESS;
}

CUresult ctx_sync(struct CUctx_st *ctx)
{
	u64 entry = truth_now_ns();
	CUresult r = ctx_drain(ctx);

	if (r == CUDA_SUCCESS)
		sync_log(entry, ctx->device, 0);
	return r;
}

CUresult stream_sync(CUstream handle)
{
	struct CUstream_st *stream;
	struct target target;
	u64 entry = truth_now_ns();
	CUresult r = stream_get(handle, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	{
		ENGINE_LOCKED();

		if (stream->capture)
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		stream_join_legacy(stream);
		target = target_hold(stream_target(stream));
	}
	target_wait(&target, stream->ctx->flags);
	sync_log(entry, stream->ctx->device, stream_id(stream));
	return CUDA_SUCCESS;
}

CUresult event_sync(struct CUevent_st *event)
{
	unsigned int flags = event->flags & CU_EVENT_BLOCKING_SYNC ? CU_CTX_SCHED_BLOCKING_SYNC
								   : event->ctx->flags;
	struct target target;
	u64 entry = truth_now_ns();

	{
		ENGINE_LOCKED();

		if (event->capture)
			return CUDA_ERROR_CAPTURED_EVENT;
		target = target_hold(event->target);
	}
	target_wait(&target, flags);
	sync_log(entry, event->ctx->device, event->stream);
	return CUDA_SUCCESS;
}
