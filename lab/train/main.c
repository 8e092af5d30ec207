/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * train: a training job on the virtual GPU that logs the truth. It calls the
 * vendors' libraries like a framework, so that probes see the calls.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "train/hidden.h"
#include "train/train.h"
#include "work/process.h"
#include "work/ranks.h"

#define AT(field) offsetof(struct train_config, field)

static const char *const loader_kinds[] = { "process", "thread", NULL };
static const char *const collective_kinds[] = { "nccl", "hidden", NULL };
static const char *const odd_kinds[] = { "none", "stop", "bytes", "late", NULL };

static const struct option_row options[] = {
	/* clang-format off */
	{ "ranks", OPTION_U64, AT(ranks), 1, NULL, "number of ranks, one process each" },
	{ "steps", OPTION_U64, AT(steps), 1, NULL, "number of training steps" },
	{ "seconds", OPTION_DOUBLE, AT(seconds), 0, NULL, "run for so many seconds, instead of --steps" },
	LOADING_OPTIONS(AT(loading)),
	{ "loader-kind", OPTION_CHOICE, AT(loading.threads), 0, loader_kinds, "kind of a loader" },
	{ "load-io-bytes", OPTION_U64, AT(loading.io_bytes), 0, NULL, "bytes to read for a batch" },
	{ "load-io-file", OPTION_STRING, AT(loading.io_file), 0, NULL, "file that loaders read from" },
	{ "launches", OPTION_U64, AT(launches), 1, NULL, "kernel launches per step" },
	{ "kernel-us", OPTION_U64, AT(kernel_us), 0, NULL, "GPU time of a launch" },
	{ "copy-bytes", OPTION_U64, AT(copy_bytes), 0, NULL, "bytes copied to the GPU per step" },
	{ "allreduces", OPTION_U64, AT(allreduces), 1, NULL, "all-reduces per step" },
	{ "allreduce-bytes", OPTION_U64, AT(allreduce_bytes), 0, NULL, "bytes of each all-reduce; 0: no all-reduce" },
	{ "collective", OPTION_CHOICE, AT(hidden_collective), 0, collective_kinds, "implementation of the all-reduces" },
	{ "optimizer-us", OPTION_U64, AT(optimizer_us), 0, NULL, "CPU time after the sync" },
	{ "launch-gap-us", OPTION_U64, AT(launch_gap_us), 0, NULL, "CPU time between launches" },
	{ "checkpoint-every", OPTION_U64, AT(checkpoint_every), 0, NULL, "steps between checkpoints; 0: no checkpoints" },
	{ "checkpoint-bytes", OPTION_U64, AT(checkpoint_bytes), 0, NULL, "size of a checkpoint" },
	{ "startup-ms", OPTION_U64, AT(startup_ms), 0, NULL, "sleep at the start, with the libraries mapped" },
	{ "join", OPTION_STRING, AT(join), 0, NULL, "run only rank SLURM_PROCID; the ranks share memory by this file" },
	{ "slow-rank", OPTION_U64, AT(slow_rank), 0, NULL, "rank whose kernels take longer" },
	{ "slow-factor", OPTION_DOUBLE, AT(slow_factor), 0, NULL, "multiply the GPU time of the slow rank by this" },
	{ "odd-rank", OPTION_U64, AT(odd_rank), 0, NULL, "rank that differs from the others in its all-reduces" },
	{ "odd-kind", OPTION_CHOICE, AT(odd_kind), 0, odd_kinds, "it stops before the last one of a step, has half the bytes, or is late" },
	{ "odd-step", OPTION_U64, AT(odd_step), 0, NULL, "first step in which it differs" },
	{ "odd-us", OPTION_U64, AT(odd_us), 0, NULL, "CPU time by which it is late" },
	WORKLOAD_OPTIONS,
	/* clang-format on */
};

static const struct train_config defaults = {
	.ranks = 1,
	.steps = 100,
	.loading = { .loaders = 2, .cpu_us = 2000, .prefetch = 2 },
	.launches = 10,
	.kernel_us = 500,
	.copy_bytes = 1 << 20,
	.allreduces = 1,
	.optimizer_us = 300,
	.launch_gap_us = 5,
	.checkpoint_bytes = 16 << 20,
	.slow_factor = 1,
	.work.seed = 1,
};

static const char *config_wrong(const void *arg)
{
	const struct train_config *config = arg;

	if (config->ranks > RANKS_MAX || config->loading.loaders > LOADERS_MAX)
		return "--ranks or --loaders is too large";
	if (config->loading.io_bytes && !config->loading.io_file)
		return "--load-io-bytes needs --load-io-file";
	if (config->allreduce_bytes % sizeof(float))
		return "--allreduce-bytes must be a multiple of 4";
	if (config->join && config->hidden_collective)
		return "--join needs --collective nccl";
	return NULL;
}

static const struct workload_kind kind = { "train", options, ARRAY_SIZE(options), config_wrong };

static void shared_init(void *map, const void *arg)
{
	const struct train_config *config = arg;
	struct train_shared *shared = map;

	ranks_barrier_init(&shared->barrier, config->ranks);
	shared->stop_at = config->seconds > 0 ? ~0ULL : config->steps;
}

static struct train_shared *shared_new(const struct train_config *config)
{
	struct train_shared *shared;

	if (config->join)
		return shared_join(config->join, sizeof(*shared), shared_init, config);
	shared = shared_alloc(sizeof(*shared));
	if (!shared)
		return NULL;
	if (config->hidden_collective) {
		shared->hidden = hidden_new(config->ranks);
		if (!shared->hidden)
			return NULL;
	}
	shared_init(shared, config);
	return shared;
}

struct job {
	const struct train_config *config;
	struct train_shared *shared;
};

static int job_rank(void *arg, u64 rank)
{
	const struct job *job = arg;

	return rank_run(job->config, job->shared, rank);
}

static void report(const struct train_config *config, const struct train_shared *shared,
		   pid_t rank0)
{
	const struct truth_quantiles *steps = &shared->steps;

	printf("{\"steps\":%" PRIu64 ",\"seconds\":%.3f,\"step_mean_ms\":%.3f,\"step_p50_ms\":%.3f,"
	       "\"step_p99_ms\":%.3f,\"gpu_busy\":",
	       (uint64_t)steps->nr, shared->seconds, steps->mean_ms, steps->p50_ms, steps->p99_ms);
	workload_print_busy(&config->work, rank0);
	printf("}\n");
}

/* A process that another program started for one of the ranks. */
static int run_joined(const struct train_config *config, struct train_shared *shared)
{
	const char *text = getenv("SLURM_PROCID");
	u64 rank;

	if (!text || options_u64(text, &rank) < 0 || rank >= config->ranks) {
		fprintf(stderr, "train: --join needs a rank below %" PRIu64 " in SLURM_PROCID\n",
			(uint64_t)config->ranks);
		return EXIT_FAILURE;
	}
	if (rank_run(config, shared, rank) < 0)
		return EXIT_FAILURE;
	if (rank == 0)
		report(config, shared, getpid());
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct train_config config = defaults;
	struct train_shared *shared;
	pid_t rank0;
	int status;

	if (!workload_begin(&kind, argc, argv, &config.work, &status))
		return status;
	poll(NULL, 0, (int)config.startup_ms);
	shared = shared_new(&config);
	if (!shared) {
		fprintf(stderr, "train: cannot allocate shared memory\n");
		return EXIT_FAILURE;
	}
	if (config.join)
		return run_joined(&config, shared);
	if (ranks_run(config.ranks, job_rank, &(struct job){ &config, shared }, &rank0) < 0)
		return EXIT_FAILURE;
	report(&config, shared, rank0);
	return EXIT_SUCCESS;
}
