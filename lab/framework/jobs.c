/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * framework: jobs on the virtual GPU that behave as frameworks do and log the truth. They
 * call the vendors' libraries, and the scopes of PyTorch, so that probes see the calls.
 * The defaults decide what limits a job.
 */
#include "framework/framework.h"

/* clang-format off */
#define DEFAULTS(...) { .steps = 100, .slow_factor = 1, .rate = 5, .scopes = 1, .work.seed = 1, __VA_ARGS__ }

static const struct job jobs[] = {
	{ "async", "the device is the limit: no sync, the launch queue is full", plain_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 50, .kernel_us = 200, .sm_percent = 100,
		   .loading = { .loaders = 2, .cpu_us = 1000, .prefetch = 2 }) },
	{ "async-starved", "the loader is too slow: no sync, the device is idle half of the time", plain_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 50, .kernel_us = 200, .sm_percent = 100,
		   .loading = { .loaders = 1, .cpu_us = 20000, .prefetch = 2 }) },
	{ "launch-bound", "the launcher is too slow: the device is idle 60 % of the time", plain_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 20, .kernel_us = 100, .sm_percent = 100,
		   .launch_gap_us = 245, .loading.prefetch = 2) },
	{ "limiter", "FSDP: waits for the unit before the previous one; the device is never idle", limiter_run,
	  DEFAULTS(.ranks = 2, .passes = 4, .launches = 20, .kernel_us = 500, .sm_percent = 100,
		   .collective_bytes = 1 << 20, .loading.prefetch = 2) },
	{ "serve-async", "serving: a thread waits for results while the next iteration is queued", serve_async_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 20, .kernel_us = 500, .sm_percent = 100,
		   .launch_gap_us = 20, .loading.prefetch = 2) },
	{ "autograd", "two threads launch in turn: forward and backward", autograd_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 20, .kernel_us = 100, .sm_percent = 100,
		   .launch_gap_us = 195, .loading.prefetch = 2) },
	{ "overlap-ddp", "collectives on a side stream beside kernels that use 70 % of the device", overlap_run,
	  DEFAULTS(.ranks = 2, .passes = 4, .launches = 20, .kernel_us = 200, .sm_percent = 70,
		   .collective_bytes = 4 << 20, .loading.prefetch = 2) },
	{ "pipeline", "stages with different amounts of work; no rank is a straggler", pipeline_run,
	  DEFAULTS(.ranks = 3, .passes = 4, .launches = 5, .kernel_us = 400, .sm_percent = 100,
		   .collective_bytes = 1 << 20, .loading.prefetch = 2) },
	{ "graphs", "one graph launch per step, with a captured collective", graphs_run,
	  DEFAULTS(.ranks = 2, .passes = 1, .launches = 50, .kernel_us = 200, .sm_percent = 100,
		   .collective_bytes = 4 << 20, .loading.prefetch = 2) },
	{ "accumulate", "8 passes per optimizer step; reads the loss after every step", accumulate_run,
	  DEFAULTS(.ranks = 1, .passes = 8, .launches = 10, .kernel_us = 200, .sm_percent = 100,
		   .sync_every = 1, .log_us = 2000,
		   .loading = { .loaders = 2, .cpu_us = 500, .prefetch = 8 }) },
	{ "moe", "a sync in each of 12 layers", moe_run,
	  DEFAULTS(.ranks = 1, .passes = 12, .launches = 4, .kernel_us = 250, .sm_percent = 100,
		   .launch_gap_us = 200, .loading.prefetch = 2) },
	{ "idle-server", "polls for requests that are rare", idle_server_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 10, .kernel_us = 500, .sm_percent = 100,
		   .launch_gap_us = 20, .loading.prefetch = 2) },
	{ "item10", "reads the loss after every 10 steps", plain_run,
	  DEFAULTS(.ranks = 1, .passes = 1, .launches = 20, .kernel_us = 200, .sm_percent = 100,
		   .sync_every = 10, .log_us = 4000, .loading.prefetch = 2) },
};
/* clang-format on */

int main(int argc, char **argv)
{
	return framework_main(&(struct program){ "framework", jobs, ARRAY_SIZE(jobs) }, argc, argv);
}
