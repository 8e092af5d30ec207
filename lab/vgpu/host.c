/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Functions on the host that are part of a stream. One library thread calls them, so
 * a slow function delays the functions of all streams, as with the real driver.
 */
#include "vgpu/engine.h"

#include <stdlib.h>
#include <time.h>

struct host_call {
	struct host_call *next;
	void (*function)(void *);
	void *data;
	u64 at_ns;  /* 0: the stream has not reached it */
	u64 end_ns; /* 0: not returned */
};

/* The lock of the engine protects these. */
static struct host_call *calls;
static pthread_cond_t calls_changed;

static struct host_call *calls_earliest(void)
{
	struct host_call *earliest = calls;

	for (struct host_call *call = calls; call; call = call->next)
		if (call->at_ns < earliest->at_ns)
			earliest = call;
	return earliest;
}

static void calls_remove(const struct host_call *call)
{
	struct host_call **at = &calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
}

static void calls_sleep(const struct host_call *next)
{
	struct timespec ts;

	if (!next) {
		pthread_cond_wait(&calls_changed, &engine.lock);
		return;
	}
	ts.tv_sec = (time_t)(next->at_ns / NSEC_PER_SEC);
	ts.tv_nsec = (long)(next->at_ns % NSEC_PER_SEC);
	pthread_cond_timedwait(&calls_changed, &engine.lock, &ts);
}

static void *host_main(void *arg)
{
	pthread_mutex_lock(&engine.lock);
	for (;;) {
		struct host_call *call = calls_earliest();

		if (!call || truth_now_ns() < call->at_ns) {
			calls_sleep(call);
			continue;
		}
		calls_remove(call);
		pthread_mutex_unlock(&engine.lock);
		call->function(call->data);
		pthread_mutex_lock(&engine.lock);
		call->end_ns = truth_now_ns();
		engine_progress(); /* frees the call */
	}
	return NULL;
}

static int host_state;

static void host_start(void)
{
	pthread_condattr_t attr;
	pthread_t thread;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&calls_changed, &attr);
	pthread_condattr_destroy(&attr);
	host_state = pthread_create(&thread, NULL, host_main, NULL);
	if (host_state)
		return;
	pthread_setname_np(thread, "cuda-EvtHandlr");
	pthread_detach(thread);
}

static void call_start(void *arg)
{
}

static bool call_poll(void *arg, u64 arrival_ns, u64 *ret_end_ns)
{
	struct host_call *call = arg;

	if (!call->at_ns) {
		call->at_ns = arrival_ns;
		call->next = calls;
		calls = call;
		pthread_cond_signal(&calls_changed);
	}
	if (!call->end_ns)
		return false;
	*ret_end_ns = call->end_ns;
	free(call);
	return true;
}

static void *call_copy(const void *arg, u64 entry_ns)
{
	struct host_call *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *(const struct host_call *)arg;
	return copy;
}

static const struct external host_external = {
	.start = call_start,
	.poll = call_poll,
	.copy = call_copy,
	.drop = free,
};

CUresult stream_call_host(CUstream handle, void (*function)(void *), void *data)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct host_call *call;
	CUresult r;

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, host_start);
	if (host_state)
		return CUDA_ERROR_UNKNOWN;
	call = calloc(1, sizeof(*call));
	if (!call)
		return CUDA_ERROR_OUT_OF_MEMORY;
	call->function = function;
	call->data = data;
	r = stream_submit_external(handle, &host_external, call, 0);
	if (r != CUDA_SUCCESS)
		free(call);
	return r;
}
