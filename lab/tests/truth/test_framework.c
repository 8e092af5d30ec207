/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jobs that behave as frameworks do: each one's truth is consistent, its device is
 * idle for the share of time that the job claims, and because of what it claims.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "framework/torch.h"
#include "idle.h"
#include "runs.h"
#include "support/timing.h"

/* Where meson put the programs; cmocka hands no arguments to tests. */
static struct {
	const char *framework, *truth, *count_scopes;
} programs;

#define MAX_ARGS     8
#define MAX_DELAY_NS (150 * NSEC_PER_MSEC) /* of a run of 1 s */
#define TEXT_OF(x)   #x
#define TEXT(x)	     TEXT_OF(x)

static const struct expected {
	const char *job;
	const char *args[MAX_ARGS];
	u64 min_percent, max_percent; /* idle */
	int cause;		      /* most of the idle time; -1: there is too little */
} table[] = {
	{ "async", {}, 0, 5, -1 },
	{ "async-starved", {}, 35, 65, TRUTH_DID_DATA },
	{ "launch-bound", {}, 50, 70, TRUTH_DID_COMPUTE },
	{ "launch-bound", { "--sync-every", "1" }, 50, 70, TRUTH_DID_COMPUTE },
	{ "launch-bound", { "--sync-every", "100" }, 50, 70, TRUTH_DID_COMPUTE },
	{ "limiter", {}, 0, 10, -1 },
	{ "serve-async", {}, 0, 10, -1 },
	{ "autograd", {}, 35, 65, TRUTH_DID_COMPUTE },
	{ "overlap-ddp", {}, 0, 5, -1 },
	{ "overlap-ddp", { "--slow-rank", "1", "--slow-factor", "1.5" }, 0, 5, -1 },
	{ "pipeline", {}, 0, 5, -1 },
	{ "graphs", {}, 0, 5, -1 },
	{ "accumulate", {}, 4, 30, TRUTH_DID_COMPUTE },
	{ "accumulate", { "--sync-every", "0" }, 0, 10, -1 },
	{ "moe", {}, 8, 40, TRUTH_DID_COMPUTE },
	{ "idle-server", {}, 80, 100, TRUTH_DID_REQUEST },
	{ "idle-server", { "--wait", "sleep" }, 80, 100, TRUTH_DID_REQUEST },
	{ "idle-server", { "--wait", "yield" }, 80, 100, TRUTH_DID_REQUEST },
	{ "item10", {}, 4, 30, TRUTH_DID_COMPUTE },
};

static struct truth_dir truth_of(const struct place *place)
{
	struct truth_dir dir;

	assert_int_equal(truth_dir_read(place->truth, &dir), 0);
	assert_int_equal(dir.nr_unreadable, 0);
	return dir;
}

/*
 * Without a CPU for a part of its time, a job does something else than it should. Its share of
 * idle time is judged by `./dev test timing`, and in virtual time by the guest tests of idle time.
 */
static void judge(const struct expected *expected, const struct idle *idle)
{
	double percent = idle_percent(idle);
	int cause = TRUTH_DID_COMPUTE;

	for (int i = 0; i < TRUTH_DID_PEER; i++)
		if (idle->did_ns[i] > idle->did_ns[cause])
			cause = i;
	print_message("# %s %s: idle %.1f %%; delays %.1f ms; cause %d\n", expected->job,
		      expected->args[0] ? expected->args[1] : "", percent,
		      (double)idle->delay_ns / NSEC_PER_MSEC, cause);
	if (!timing_is_judged())
		return;
	assert_true(idle->delay_ns <= MAX_DELAY_NS);
	if (percent < (double)expected->min_percent || percent > (double)expected->max_percent)
		fail_msg("%s: idle %.1f %%", expected->job, percent);
	if (expected->cause >= 0)
		assert_int_equal(cause, expected->cause);
}

static void job_judge(const struct place *place, const struct expected *expected)
{
	char *args[MAX_ARGS + 7] = {
		(char *)programs.framework, (char *)expected->job, "--seconds", "1", "--truth",
		(char *)place->truth
	};
	struct truth_dir dir;
	struct idle idle;

	for (size_t i = 0; i < MAX_ARGS && expected->args[i]; i++)
		args[6 + i] = (char *)expected->args[i];
	assert_int_equal(run_finish(run_start(place, args)), 0);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);
	dir = truth_of(place);
	idle = idle_of_rank0(&dir);
	truth_dir_done(&dir);
	judge(expected, &idle);
	remove_all(place->truth);
}

static void test_idle_share_and_cause(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		job_judge(*state, &table[i]);
}

/* Every optimizer step of a training job is a scope; it ends with the step. */
static void test_scopes(void **state)
{
	const struct place *place = *state;
	struct place scopes = *place;

	snprintf(scopes.output, sizeof(scopes.output), "%s/scopes", place->dir);
	setenv("SCOPES_FILE", scopes.output, 1);
	setenv("LD_PRELOAD", programs.count_scopes, 1);
	assert_int_equal(RUN(place, (char *)programs.framework, "accumulate", "--steps", "7"), 0);
	assert_int_equal(RUN(place, (char *)programs.framework, "accumulate", "--steps", "7",
			     "--scopes", "off"),
			 0);
	unsetenv("LD_PRELOAD");
	assert_int_equal(output_number(place, "steps"), 7);
	assert_int_equal(output_number(&scopes, "steps"), 7);
	assert_int_equal(output_number(&scopes, "clears"), 7);
	assert_int_equal(output_number(&scopes, "batches"), 7 * 8);
	assert_int_equal(output_number(&scopes, "left"), 7 * 10);
	assert_int_equal(output_number(&scopes, "wrong"), 0);
}

/* The probed symbols are exactly those that the lab's library has. */
static void test_scopes_have_the_names_of_pytorch(void **state)
{
	static const char *const rows[] = {
#define CALL(runtime, symbol, ...) #runtime " " #symbol,
#include "abi/runtimes.def"
	};
	static const char *const names[] = {
		"TORCH " TEXT(TORCH_SCOPE_ENTER),
		"TORCH " TEXT(TORCH_SCOPE_LEAVE),
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool found = false;

		for (size_t j = 0; j < ARRAY_SIZE(rows); j++)
			found |= strcmp(rows[j], names[i]) == 0;
		if (!found)
			fail_msg("no row for %s", names[i]);
	}
}

static void test_ranks_run_the_same_steps(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;
	struct events steps;
	u64 last[2] = {};

	assert_int_equal(RUN(place, (char *)programs.framework, "limiter", "--seconds", "0.3",
			     "--truth", (char *)place->truth),
			 0);
	dir = truth_of(place);
	steps = events_of(&dir, TRUTH_STEP);
	for (u64 i = 0; i < steps.nr; i++)
		last[steps.all[i].rec.b % 2] = steps.all[i].rec.a;
	assert_true(steps.nr > 0);
	assert_int_equal(last[0], last[1]);
	assert_int_equal(steps.nr, 2 * (last[0] + 1));
	free(steps.all);
	truth_dir_done(&dir);
}

/* The call of the collective was captured; every launch of the graph performs it again. */
static void test_graphs_replay_their_collective(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;
	struct events collectives, launches;
	u64 nr_graphs = 0;

	assert_int_equal(RUN(place, (char *)programs.framework, "graphs", "--steps", "20",
			     "--truth", (char *)place->truth),
			 0);
	dir = truth_of(place);
	collectives = events_of(&dir, TRUTH_COLLECTIVE);
	launches = events_of(&dir, TRUTH_LAUNCH);
	for (u64 i = 0; i < launches.nr; i++)
		nr_graphs += launches.all[i].rec.sub == TRUTH_WORK_GRAPH;
	assert_int_equal(nr_graphs, 2 * 20);
	assert_int_equal(collectives.nr, 2 * 20);
	free(collectives.all);
	free(launches.all);
	truth_dir_done(&dir);
}

/* Work of the ranks relative to rank 0; the same number of kernels each, on devices of their own.
 */
static void test_work_of_ranks(void **state)
{
	static const struct {
		const char *job, *factor;
		u64 percent; /* of rank 1 */
	} rows[] = {
		{ "overlap-ddp", "1", 100 },
		{ "overlap-ddp", "1.5", 150 },
		{ "pipeline", "1", 60 },
	};
	const struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 kernels_ns[2] = {};
		struct truth_dir dir;
		struct events busy;

		assert_int_equal(RUN(place, (char *)programs.framework, (char *)rows[i].job,
				     "--ranks", "2", "--steps", "5", "--slow-rank", "1",
				     "--slow-factor", (char *)rows[i].factor, "--truth",
				     (char *)place->truth),
				 0);
		dir = truth_of(place);
		busy = events_of(&dir, TRUTH_BUSY);
		for (u64 j = 0; j < busy.nr; j++)
			if (busy.all[j].rec.sub == TRUTH_WORK_KERNEL)
				kernels_ns[busy.all[j].rec.a] +=
					busy.all[j].rec.end_ns - busy.all[j].rec.start_ns;
		assert_int_equal(kernels_ns[1] * 100, kernels_ns[0] * rows[i].percent);
		free(busy.all);
		truth_dir_done(&dir);
		remove_all(place->truth);
	}
}

static void test_wrong_job(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.framework, "no-such-job"), 2);
	assert_int_equal(RUN(place, (char *)programs.framework, "async", "--no-such-option"), 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACED(test_idle_share_and_cause),
		PLACED(test_scopes),
		PLACED(test_scopes_have_the_names_of_pytorch),
		PLACED(test_ranks_run_the_same_steps),
		PLACED(test_graphs_replay_their_collective),
		PLACED(test_work_of_ranks),
		PLACED(test_wrong_job),
	};

	if (argc != 4)
		return 2;
	programs.framework = argv[1];
	programs.truth = argv[2];
	programs.count_scopes = argv[3];
	return cmocka_run_group_tests_name("framework", tests, NULL, NULL);
}
