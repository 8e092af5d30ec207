/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of programs whose jobs share the code of this folder. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/framework.h"
#include "work/process.h"
#include "work/ranks.h"

#define AT(field) offsetof(struct framework_config, field)

static const char *const waits[] = { "epoll", "sleep", "yield", NULL };
static const char *const on_off[] = { "off", "on", NULL };

static const struct option_row options[] = {
	/* clang-format off */
	{ "ranks", OPTION_U64, AT(ranks), 1, NULL, "number of ranks, one process each" },
	{ "steps", OPTION_U64, AT(steps), 1, NULL, "number of steps or iterations" },
	{ "seconds", OPTION_DOUBLE, AT(seconds), 0, NULL, "run for so many seconds, instead of --steps" },
	LOADING_OPTIONS(AT(loading)),
	{ "launches", OPTION_U64, AT(launches), 1, NULL, "kernel launches per pass, layer, unit or request" },
	{ "kernel-us", OPTION_U64, AT(kernel_us), 0, NULL, "GPU time of a launch" },
	{ "launch-gap-us", OPTION_U64, AT(launch_gap_us), 0, NULL, "CPU time before each launch" },
	{ "sync-every", OPTION_U64, AT(sync_every), 0, NULL, "steps between two reads of the loss; 0: never" },
	{ "log-us", OPTION_U64, AT(log_us), 0, NULL, "CPU time after each read of the loss" },
	{ "passes", OPTION_U64, AT(passes), 1, NULL, "passes, layers, units or buckets per step" },
	{ "collective-bytes", OPTION_U64, AT(collective_bytes), 0, NULL, "bytes of each collective" },
	{ "sm-percent", OPTION_U64, AT(sm_percent), 1, NULL, "multiprocessors that a kernel uses, percent" },
	{ "slow-rank", OPTION_U64, AT(slow_rank), 0, NULL, "rank whose kernels take longer" },
	{ "slow-factor", OPTION_DOUBLE, AT(slow_factor), 0, NULL, "multiply the GPU time of the slow rank by this" },
	{ "rate", OPTION_DOUBLE, AT(rate), 0, NULL, "requests per second" },
	{ "wait", OPTION_CHOICE, AT(wait), 0, waits, "how the server waits for requests" },
	{ "members", OPTION_U64, AT(members), 1, NULL, "tasks beside the launcher: workers, a pool or a team" },
	{ "member-us", OPTION_U64, AT(member_us), 0, NULL, "CPU time of one of them per step, +-20 %" },
	{ "scopes", OPTION_CHOICE, AT(scopes), 0, on_off, "enter the scopes of PyTorch" },
	{ "startup-ms", OPTION_U64, AT(startup_ms), 0, NULL, "sleep at the start, with the libraries mapped" },
	WORKLOAD_OPTIONS,
	/* clang-format on */
};

static const char *config_wrong(const void *arg)
{
	const struct framework_config *config = arg;

	if (config->ranks > RANKS_MAX || config->loading.loaders > LOADERS_MAX)
		return "--ranks or --loaders is too large";
	if (config->members > MEMBERS_MAX)
		return "--members is too large";
	if (config->sm_percent > 100)
		return "--sm-percent is more than 100";
	if (!(config->rate > 0))
		return "--rate must be greater than 0";
	if (config->steps >= STARTED_LAST)
		return "--steps is too large";
	return NULL;
}

static struct shared *shared_new(const struct framework_config *config)
{
	struct shared *shared = shared_alloc(sizeof(*shared));

	if (!shared)
		return NULL;
	ranks_barrier_init(&shared->barrier, config->ranks);
	shared->started = config->seconds > 0 ? 0 : config->steps | STARTED_LAST;
	return shared;
}

/* One process of the job. */
struct run {
	const struct job *job;
	const struct framework_config *config;
	struct shared *shared;
};

static int run_rank(void *arg, u64 rank)
{
	const struct run *run = arg;

	return rank_run(run->config, run->shared, rank, run->job->run);
}

static void report(const struct run *run, pid_t rank0)
{
	const struct truth_quantiles *steps = &run->shared->steps;

	printf("{\"job\":\"%s\",\"steps\":%" PRIu64 ",\"seconds\":%.3f,\"step_mean_ms\":%.3f,"
	       "\"step_p50_ms\":%.3f,\"step_p99_ms\":%.3f,\"gpu_busy\":",
	       run->job->name, (uint64_t)steps->nr, run->shared->seconds, steps->mean_ms,
	       steps->p50_ms, steps->p99_ms);
	workload_print_busy(&run->config->work, rank0);
	printf("}\n");
}

static int job_run(const struct job *job, struct framework_config *config)
{
	struct run run = { job, config, shared_new(config) };
	char percent[32];
	pid_t rank0;

	if (!run.shared) {
		fprintf(stderr, "%s: cannot allocate shared memory\n", config->program);
		return EXIT_FAILURE;
	}
	snprintf(percent, sizeof(percent), "%" PRIu64, (uint64_t)config->sm_percent);
	setenv("VGPU_SM_PERCENT", percent, 1);
	poll(NULL, 0, (int)config->startup_ms);
	if (job->begin && job->begin(config, run.shared) < 0)
		return EXIT_FAILURE;
	if (ranks_run(config->ranks, run_rank, &run, &rank0) < 0)
		return EXIT_FAILURE;
	if (job->end && job->end(run.shared) < 0)
		return EXIT_FAILURE;
	report(&run, rank0);
	return EXIT_SUCCESS;
}

static const struct job *job_find(const struct program *program, const char *name)
{
	for (size_t i = 0; i < program->nr_jobs; i++)
		if (strcmp(program->jobs[i].name, name) == 0)
			return &program->jobs[i];
	return NULL;
}

static void jobs_print(const struct program *program)
{
	printf("Usage: %s JOB [OPTION...]\n\n", program->name);
	for (size_t i = 0; i < program->nr_jobs; i++)
		printf("  %-14s %s\n", program->jobs[i].name, program->jobs[i].help);
	printf("\n'%s JOB --help' prints the options with the defaults of the job.\n",
	       program->name);
}

int framework_main(const struct program *program, int argc, char **argv)
{
	const char *asked = argc > 1 ? argv[1] : "--help";
	const struct job *job = job_find(program, asked);
	struct framework_config config;
	char name[64];
	int status;

	if (strcmp(asked, "--help") == 0) {
		jobs_print(program);
		return EXIT_SUCCESS;
	}
	if (!job) {
		fprintf(stderr, "%s: unknown job '%s'; see '%s --help'\n", program->name, asked,
			program->name);
		return 2;
	}
	snprintf(name, sizeof(name), "%s %s", program->name, job->name);
	config = job->defaults;
	config.program = program->name;
	if (!workload_begin(
		    &(struct workload_kind){ name, options, ARRAY_SIZE(options), config_wrong },
		    argc - 1, argv + 1, &config.work, &status))
		return status;
	return job_run(job, &config);
}
