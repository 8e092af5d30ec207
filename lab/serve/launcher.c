/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Continuous batching: waiting requests join the batch between two tokens. A round
 * computes either the first token of the requests that just joined, or the next
 * token of all requests. Phases follow docs/concepts/phases-and-roles.md; the wait for
 * a tokenized request is DataLoading.
 */
#include <errno.h>
#include <stdio.h>

#include "serve/serve.h"
#include "vgpu/include/vgpu_cudart.h"
#include "work/phases.h"

struct launcher {
	struct serve *serve;
	struct phases phases;
	struct request *active[SERVE_MAX_BATCH];
	u64 nr_active;
	u64 nr_fresh; /* number of requests at the end of `active` without a token */
	u64 round_ns; /* end of the previous round; 0: the batch was empty */
};

static int cuda_check(const char *what, cudaError_t error)
{
	if (error == cudaSuccess)
		return 0;
	fprintf(stderr, "serve: %s: %s\n", what, cudaGetErrorString(error));
	return -EIO;
}

static int gpu_open(const struct serve_config *config)
{
	int r = cuda_check("cudaSetDevice", cudaSetDevice(0));

	if (r == 0)
		r = cuda_check("cudaSetDeviceFlags",
			       cudaSetDeviceFlags(workload_sync_flags(&config->work)));
	return r;
}

static void admit(struct launcher *launcher)
{
	const struct serve *serve = launcher->serve;
	struct request *request;

	while (launcher->nr_active < serve->config->batch &&
	       (request = queue_try_pop(serve->tokenized))) {
		launcher->active[launcher->nr_active++] = request;
		launcher->nr_fresh++;
	}
	if (launcher->nr_active > 0)
		return;
	launcher->round_ns = 0;
	phases_set(&launcher->phases, PHASE_DATA_LOADING, truth_now_ns());
	request = queue_pop(serve->tokenized);
	phases_set(&launcher->phases, PHASE_UNKNOWN, truth_now_ns());
	if (request) {
		launcher->active[launcher->nr_active++] = request;
		launcher->nr_fresh++;
	}
}

/* Runs the GPU work of one token, in many small launches; *ret_now is when the sync returned. */
static int compute(struct launcher *launcher, u64 *ret_now)
{
	const struct serve_config *config = launcher->serve->config;
	u64 total_us =
		launcher->nr_fresh ? config->prefill_us * launcher->nr_fresh : config->decode_us;
	u64 kernel_ns = total_us * NSEC_PER_USEC / config->launches;
	void *args[] = { &kernel_ns };
	const dim3 one = { 1, 1, 1 };
	int r = 0;

	phases_set(&launcher->phases, PHASE_GPU_COMPUTE, truth_now_ns());
	for (u64 i = 0; i < config->launches && r == 0; i++)
		r = cuda_check("cudaLaunchKernel",
			       cudaLaunchKernel((const void *)vgpu_busy, one, one, args, 0, NULL));
	if (r == 0)
		r = cuda_check("cudaDeviceSynchronize", cudaDeviceSynchronize());
	*ret_now = truth_now_ns();
	phases_set(&launcher->phases, PHASE_OPTIMIZER, *ret_now);
	return r;
}

static void finish(struct launcher *launcher, struct request *request, u64 now_ns)
{
	request->done_ns = now_ns;
	truth_log(launcher->serve->truth, TRUTH_REQUEST, 0, request->arrival_ns,
		  request->first_token_ns, request->id, now_ns, 0);
}

/* The requests that got a token: the fresh requests if there are any, otherwise all. */
static void deliver(struct launcher *launcher, u64 now_ns)
{
	u64 first = launcher->nr_fresh ? launcher->nr_active - launcher->nr_fresh : 0;
	u64 kept = first;

	if (!launcher->nr_fresh && launcher->round_ns)
		truth_log(launcher->serve->truth, TRUTH_TOKEN, 0, launcher->round_ns, now_ns,
			  launcher->nr_active, 0, 0);
	launcher->round_ns = now_ns;
	for (u64 i = first; i < launcher->nr_active; i++) {
		struct request *request = launcher->active[i];

		if (launcher->nr_fresh)
			request->first_token_ns = now_ns;
		if (--request->tokens_left == 0)
			finish(launcher, request, now_ns);
		else
			launcher->active[kept++] = request;
	}
	launcher->nr_active = kept;
	launcher->nr_fresh = 0;
}

int launcher_run(struct serve *serve)
{
	struct launcher launcher = { .serve = serve };
	u64 now;
	int r;

	phases_begin(&launcher.phases, serve->truth, PHASE_UNKNOWN);
	r = gpu_open(serve->config);
	while (r == 0) {
		admit(&launcher);
		if (launcher.nr_active == 0)
			break;
		r = compute(&launcher, &now);
		if (r == 0)
			deliver(&launcher, now);
	}
	phases_end(&launcher.phases, TRUTH_ROLE_LAUNCHER, truth_now_ns());
	return r;
}
