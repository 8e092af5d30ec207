/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * roles: jobs on the virtual GPU whose tasks are hard to tell apart from outside. They log
 * the truth: the role of each task, and which task ended each wait.
 */
#include <stdlib.h>

#include "roles/crew.h"
#include "roles/roles.h"

#define SYNC_BLOCK 2 /* index into workload_syncs */

/* The service thread of the collective library creates its progress thread after the init. */
static int progress_begin(const struct framework_config *config, struct shared *shared)
{
	return setenv("VGPU_NCCL_SERVICE", "1", 1);
}

/* clang-format off */
#define DEFAULTS(nr_ranks, nr_passes, ...) { .ranks = nr_ranks, .passes = nr_passes, .steps = 100, .slow_factor = 1, .rate = 5, .sm_percent = 100, \
	.sync_every = 1, .log_us = 1000, .work = { .sync = SYNC_BLOCK, .seed = 1 }, __VA_ARGS__ }
#define LOADERS .loading = { .loaders = 2, .cpu_us = 14000, .prefetch = 2 }

static const struct job jobs[] = {
	{ "autograd", "a second thread launches the backward pass while the main thread sleeps", autograd_run,
	  DEFAULTS(1, 1, LOADERS, .launches = 20, .kernel_us = 500, .launch_gap_us = 50), NULL, NULL },
	{ "forkserver", "loaders are forked by a fork server: grandchildren of the launcher", forkserver_run,
	  DEFAULTS(1, 1, .launches = 20, .kernel_us = 1000, .members = 2, .member_us = 14000, .loading.prefetch = 2), NULL, NULL },
	{ "spawn", "loaders are executed programs", spawn_run,
	  DEFAULTS(1, 1, .launches = 20, .kernel_us = 1000, .members = 2, .member_us = 14000, .loading.prefetch = 2), NULL, NULL },
	{ "nccl-progress", "the service thread of NCCL creates the progress thread", overlap_run,
	  DEFAULTS(2, 4, .launches = 20, .kernel_us = 500, .collective_bytes = 4 << 20,
		   .loading = { .loaders = 1, .cpu_us = 4000, .prefetch = 2 }), progress_begin, NULL },
	{ "offload", "the optimizer runs on the CPU, by a team of threads", offload_run,
	  DEFAULTS(1, 1, LOADERS, .launches = 20, .kernel_us = 1000, .members = 1, .member_us = 8000), NULL, NULL },
	{ "engine-poll", "an engine core feeds workers that poll shared memory", engine_run,
	  DEFAULTS(2, 1, .launches = 10, .kernel_us = 500, .members = 1, .member_us = 2000, .loading.prefetch = 2),
	  engine_begin, engine_end },
	{ "multi-device", "two threads launch, each on its own device", devices_run,
	  DEFAULTS(1, 1, LOADERS, .launches = 10, .kernel_us = 1000), NULL, NULL },
	{ "chain", "producer, pool and pin thread before the launcher, in one process", chain_run,
	  DEFAULTS(1, 1, .launches = 20, .kernel_us = 1000, .members = 2, .member_us = 14000, .loading.prefetch = 2), NULL, NULL },
	{ "chain-socket", "the same; producer and pool are processes that are connected by sockets", chain_socket_run,
	  DEFAULTS(1, 1, .launches = 20, .kernel_us = 1000, .members = 2, .member_us = 14000, .loading.prefetch = 2), NULL, NULL },
	{ "chain-shm", "the same, connected by shared memory and futexes", chain_shm_run,
	  DEFAULTS(1, 1, .launches = 20, .kernel_us = 1000, .members = 2, .member_us = 14000, .loading.prefetch = 2), NULL, NULL },
	{ "ckpt-fork", "a forked process writes a checkpoint; no task waits for it", checkpoint_run,
	  DEFAULTS(1, 1, LOADERS, .launches = 20, .kernel_us = 1000, .members = 1, .member_us = 100000), NULL, NULL },
	{ "rl", "environments, connected by pipes, compute what the next step needs", rl_run,
	  DEFAULTS(1, 1, .launches = 10, .kernel_us = 1000, .members = 4, .member_us = 4000, .loading.prefetch = 1), NULL, NULL },
};
/* clang-format on */

int main(int argc, char **argv)
{
	int status = crew_main(argc, argv);

	if (status >= 0)
		return status;
	return framework_main(&(struct program){ "roles", jobs, ARRAY_SIZE(jobs) }, argc, argv);
}
