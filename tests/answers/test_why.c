/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the output of zernel why for two snapshots with a known difference. */
#include <errno.h>

#include "answers/capture.h"
#include "base/macros.h"
#include "cli/why/why_print.h"

#define SPAN_NS	  (5 * NSEC_PER_SEC)
#define NR_STEPS  100
#define FIRST_PID 4711

static void set(char *to, size_t size, const char *text)
{
	snapshot_set_text(to, size, text, strlen(text));
}

#define SET(member, text) set(member, sizeof(member), text)

/* Two snapshots. The GPUs of all ranks are busy between them. */
struct span {
	struct snapshot *before, *after;
};

static struct snapshot *make(u32 nr_ranks, bool after)
{
	const struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *s;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	s->monotonic_ns = NSEC_PER_SEC + after * SPAN_NS;
	s->time_ms = 1700000000000 + after * SPAN_NS / NSEC_PER_MSEC;
	for (u32 rank = 0; rank < nr_ranks; rank++) {
		struct snapshot_process *process = snapshot_add_process(s, FIRST_PID + rank);
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, rank);
		struct hist *steps;

		process->job = snapshot_add_job(s, "/slurm/job_12", "slurm 12");
		process->start_ns = 7;
		process->nr_ranks = nr_ranks;
		process->rank = (s32)rank;
		process->launcher_tid = process->pid;
		process->nr_memory = 1;
		process->memory[0].gpu = rank;
		process->busy_ns = 1000 + after * SPAN_NS;
		process->nr_steps = 3 + after * NR_STEPS;
		SET(process->comm, "python3");
		steps = snapshot_add_hist(s, &process->hists, HIST_STEP);
		for (u64 i = 0; i < process->nr_steps; i++)
			hist_record(steps, SPAN_NS / NR_STEPS);
		snapshot_add_thread(s, process->pid, ROLE_LAUNCHER)->pid = process->pid;
		for (u32 i = 0; i < 3; i++)
			snapshot_add_thread(s, 9000 + i, ROLE_LOADER)->pid = process->pid;
		gpu->valid = SNAPSHOT_GPU_ACTIVE;
		gpu->active_ns = after * SPAN_NS;
		gpu->active_at_ns = 1 + after * SPAN_NS;
	}
	return s;
}

static struct span span_new(u32 nr_ranks)
{
	return (struct span){ make(nr_ranks, false), make(nr_ranks, true) };
}

static void span_free(struct span span)
{
	snapshot_free(span.before);
	snapshot_free(span.after);
}

/* Turns a share of the busy time into idle time. */
static void idle(struct span span, u32 rank, u32 cause, u32 percent, const char *culprit)
{
	struct snapshot_process *process = &span.after->processes[rank];
	u64 ns = SPAN_NS / 100 * percent;

	process->busy_ns -= ns;
	process->idle_ns[cause] += ns;
	span.after->gpus[rank].active_ns -= ns;
	if (culprit) {
		struct snapshot_culprit *each = &process->culprits[process->nr_culprits++];

		*each = (struct snapshot_culprit){ .cause = cause, .ns = ns };
		SET(each->name, culprit);
	}
}

/* The GPU waits in a collective for other ranks. */
static void wait_for_ranks(struct span span, u32 rank, u32 percent)
{
	span.after->processes[rank].phase_ns[PHASE_COLLECTIVE] += SPAN_NS / 100 * percent;
	span.after->gpus[rank].active_ns -= SPAN_NS / 100 * percent;
}

static char *print(struct span span, const struct why_options *options, struct term term,
		   int expected)
{
	struct capture capture = capture_begin();

	term.out = capture.out;
	assert_int_equal(why_print(span.before, span.after, options, &term), expected);
	return capture_end(&capture);
}

static void assert_answer(struct span span, const char *who, int expected, const char *text)
{
	char *answer = print(span, &(struct why_options){ .who = who }, (struct term){}, expected);

	assert_string_equal(answer, text);
	free(answer);
}

static void assert_shows(struct span span, const char *who, const char *line, bool shows)
{
	char *answer = print(span, &(struct why_options){ .who = who }, (struct term){}, 0);

	if (!strstr(answer, line) == shows)
		print_message("# '%s' is%s in:\n%s", line, shows ? " not" : "", answer);
	assert_int_equal(strstr(answer, line) != NULL, shows);
	free(answer);
}

static void test_whole_answer(void **state)
{
	struct span span = span_new(1);

	span.after->processes[0].nr_ranks = 0;
	idle(span, 0, IDLE_LOADER_RUNQUEUE, 20, "cc1");
	idle(span, 0, IDLE_LOADER_RUNQUEUE, 10, "ld");
	idle(span, 0, IDLE_LOADER_CPU, 10, NULL);
	idle(span, 0, IDLE_LOCK, 3, NULL);
	assert_answer(
		span, NULL, 0,
		"GPU of python3 (4711) was idle 43 % of the last 5.0 s, mostly because its loaders "
		"waited for a CPU; cc1 ran instead.\n"
		"\n"
		"python3 (4711): 100 steps, mean 50.0 ms, p50 50.0 ms, p99 50.0 ms\n"
		"CAUSE                         MS/STEP  OF TIME  RESPONSIBLE\n"
		"loaders waited for a CPU        15.00    30.0%  cc1 67%, ld 33%\n"
		"loaders computed                 5.00    10.0%  \n"
		"launcher waited for a thread     1.50     3.0%  \n"
		"idle                            21.50    43.0%  from syncs\n"
		"busy                            28.50    57.0%  \n"
		"\n"
		"-> The scheduler is off. To measure its effect on this job, run: zernel ab 4711\n"
		"-> The loaders (3 now) are busy computing. Add loaders if CPUs are free, or make "
		"preprocessing cheaper.\n"
		"-> The launching thread waits for another thread of process 4711. Use a profiler "
		"to find that thread.\n");
	span_free(span);
}

static void test_busy_gpu_is_not_explained(void **state)
{
	struct span span = span_new(1);

	idle(span, 0, IDLE_CPU, 4, NULL);
	assert_shows(span, NULL,
		     "GPU of rank 0 (python3 4711) was busy 96 % of the last 5.0 s: nothing to "
		     "explain.\n",
		     true);
	assert_shows(span, NULL, "because", false);
	/* An idle share of 5 % is explained. */
	idle(span, 0, IDLE_CPU, 1, NULL);
	assert_shows(span, NULL,
		     "was idle 5 % of the last 5.0 s, mostly because its launching thread "
		     "computed.\n",
		     true);
	span_free(span);
}

static void test_advice_depends_on_evidence(void **state)
{
	static const struct {
		u32 cause;
		const char *culprit;
		u32 sched;
		const char *advice;
	} rows[] = {
		{ IDLE_RUNQUEUE, "cc1", SCHED_OFF, "zernel ab 4711" },
		{ IDLE_RUNQUEUE, NULL, SCHED_EJECTED, "zernel ab 4711" },
		{ IDLE_RUNQUEUE, "cc1", SCHED_ATTACHED, "reserves 30 % of each CPU for ordinary" },
		{ IDLE_LOADER_RUNQUEUE, "cc1", SCHED_ATTACHED,
		  "late loaders first (3 loaders now)" },
		{ IDLE_LOADER_CPU, NULL, SCHED_ATTACHED, "make preprocessing cheaper" },
		{ IDLE_LOADER_DISK, "nvme0n1", SCHED_ATTACHED,
		  "The loaders wait for the disk nvme0n1." },
		{ IDLE_LOADER_DISK, NULL, SCHED_ATTACHED, "The loaders wait for a disk." },
		{ IDLE_LOADER_OTHER, NULL, SCHED_ATTACHED, "network" },
		{ IDLE_COLLECTIVE, NULL, SCHED_ATTACHED, "No rank on this node stands out" },
		{ IDLE_CPU, NULL, SCHED_ATTACHED, "Do less work between steps" },
		{ IDLE_DISK, "sda", SCHED_ATTACHED, "thread itself waits for the disk sda." },
		{ IDLE_DISK, NULL, SCHED_ATTACHED, "thread itself waits for a disk." },
		{ IDLE_MEMORY, NULL, SCHED_ATTACHED, "until the kernel reclaims memory." },
		{ IDLE_LOCK, NULL, SCHED_ATTACHED, "Use a profiler" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct span span = span_new(1);

		span.after->sched.state = rows[i].sched;
		span.after->sched.reserved_percent = 30;
		idle(span, 0, rows[i].cause, 40, rows[i].culprit);
		assert_shows(span, NULL, rows[i].advice, true);
		span_free(span);
	}
}

static void test_no_advice_without_evidence(void **state)
{
	struct span span = span_new(1);

	idle(span, 0, IDLE_OTHER, 40, NULL);
	idle(span, 0, IDLE_DISK, 2, NULL);
	assert_shows(span, NULL, "launcher slept", true);
	assert_shows(span, NULL, "->", false);
	/* The same advice for two causes is printed once. */
	idle(span, 0, IDLE_RUNQUEUE, 10, NULL);
	idle(span, 0, IDLE_LOADER_RUNQUEUE, 10, NULL);
	assert_shows(span, NULL, "-> The scheduler is off", true);
	assert_shows(span, NULL, "zernel ab 4711\n-> ", false);
	span_free(span);
}

static void test_straggler_is_named(void **state)
{
	struct span span = span_new(4);

	for (u32 rank = 0; rank < 4; rank++)
		if (rank != 2)
			wait_for_ranks(span, rank, 31);
	idle(span, 2, IDLE_LOADER_CPU, 30, NULL);
	assert_shows(
		span, NULL,
		"Rank 2 delays the other ranks: they wait for it 31 % of the time. GPU of rank 2 "
		"(python3 4713) was idle 30 % of the last 5.0 s, mostly because its loaders "
		"still computed the data.\n"
		"\n"
		"RANK   PID  COMMAND     STEP    BUSY   IDLE  WAITS  LARGEST CAUSE\n"
		"   0  4711  python3  50.0 ms  100.0%   0.0%  31.0%  \n"
		"   1  4712  python3  50.0 ms  100.0%   0.0%  31.0%  \n"
		"   2  4713  python3  50.0 ms   70.0%  30.0%   0.0%  loaders computed\n",
		true);
	assert_shows(span, NULL, "-> The loaders (3 now) are busy", true);
	/* The answer about a waiting rank names the straggler. */
	assert_shows(
		span, "4711",
		"GPU of rank 0 (python3 4711) was busy 100 % of the last 5.0 s, but waited for "
		"other ranks 31 % of that time. Rank 2 delays it in collectives, 31 % of the "
		"time.\n",
		true);
	assert_shows(span, "4711", "  waiting for other ranks    15.50    31.0%", true);
	assert_shows(span, "4711",
		     "-> Rank 2 enters collectives last. To see why, run: zernel why 4713\n", true);
	assert_shows(span, "4711", "RANK", false);
	span_free(span);
}

static void test_straggler_that_computes(void **state)
{
	struct span span = span_new(2);

	wait_for_ranks(span, 1, 50);
	assert_shows(span, "slurm 12",
		     "GPU of rank 0 (python3 4711) was busy 100 % of the last 5.0 s: it computes "
		     "longer than the GPUs of the other ranks.\n",
		     true);
	assert_shows(span, "slurm 12", "-> Rank 0 has more to compute", true);
	span_free(span);
}

static void test_last_rank_without_measurement(void **state)
{
	struct span span = span_new(2);

	wait_for_ranks(span, 1, 50);
	span.after->gpus[0].valid = 0;
	assert_shows(span, "slurm 12",
		     "Rank 0 enters collectives last: its delay is 50 % of the time. GPU of "
		     "rank 0 (python3 4711) was busy 100 % of the last 5.0 s.\n",
		     true);
	assert_shows(span, "slurm 12", "has more to compute", false);
	assert_shows(span, "4712",
		     " Rank 0 enters collectives last: its delay is 50 % of the time.\n", true);
	span_free(span);
}

static void test_upper_bound_is_marked(void **state)
{
	struct span span = span_new(2);

	wait_for_ranks(span, 0, 20);
	wait_for_ranks(span, 1, 20);
	span.after->gpus[0].valid = 0;
	assert_shows(span, NULL, "<20.0%", true);
	assert_shows(span, "4711", "    20.0%  at most: ", true);
	/* Its own GPU reports its activity, but not whether its kernels fill it. */
	assert_shows(span, "4712", "    20.0%  at most: ", true);
	/* A bound is not evidence. */
	assert_shows(span, "4711", "->", false);
	assert_shows(span, "4712", "->", false);
	span_free(span);
}

static void test_selection_of_processes(void **state)
{
	struct span span = span_new(2);
	struct snapshot_process *loader = snapshot_add_process(span.after, 5000);

	loader->consumer_pid = 4712;
	span.after->processes[1].job =
		snapshot_add_job(span.after, "/user/other", "other \033[31mjob");
	assert_shows(span, "5000", "GPU of rank 1 (python3 4712)", true);
	assert_shows(span, "/slurm/job_12", "4711", true);
	assert_shows(span, "/slurm/job_12", "4712", false);
	assert_shows(span, NULL, "4711", true);
	assert_shows(span, NULL, "4712", true);
	assert_shows(span, NULL, "5000", false);
	assert_answer(span, "4713", -ENOENT, "No matching process or job uses a GPU.\n");
	assert_answer(span, "slurm", -ENOENT, "No matching process or job uses a GPU.\n");
	assert_answer(span, "", -ENOENT, "No matching process or job uses a GPU.\n");
	span_free(span);
}

static void test_reason_for_no_answer(void **state)
{
	struct span span = span_new(2);

	span.before->processes[1].start_ns++;
	assert_shows(
		span, NULL,
		"rank 1 (python3 4712): no answer, because it started during the measurement.\n",
		true);
	assert_answer(
		span, "4712", -ENOENT,
		"rank 1 (python3 4712): no answer, because it started during the measurement.\n");
	span.before->processes[0].busy_ns = ~0ULL;
	assert_answer(span, "4711", -ENOENT,
		      "rank 0 (python3 4711): no answer, because zerneld was restarted, which "
		      "reset its counters.\n");
	span.before->processes[0].busy_ns = span.after->processes[0].busy_ns;
	assert_answer(
		span, "4711", -ENOENT,
		"rank 0 (python3 4711): no answer, because it has not launched GPU work yet.\n");
	span.after->nr_processes = 0;
	assert_answer(span, NULL, -ENOENT, "No process uses a GPU.\n");
	span_free(span);
}

static void test_no_steps(void **state)
{
	struct span span = span_new(1);

	span.after->processes[0].nr_steps = span.before->processes[0].nr_steps;
	idle(span, 0, IDLE_DISK, 40, NULL);
	assert_shows(span, NULL,
		     "rank 0 (python3 4711): no steps found; GPU busy for at least 3.0 s and idle "
		     "for at least 2.0 s of 5.0 s\n",
		     true);
	assert_shows(span, NULL, "launcher waited for a disk        -    40.0%  \n", true);
	span_free(span);
}

/* Turns a share of the busy time into open time: the GPU may have been idle. */
static void open_time(struct span span, u32 cause, u32 percent)
{
	span.after->processes[0].busy_ns -= SPAN_NS / 100 * percent;
	span.after->processes[0].open_ns[cause] += SPAN_NS / 100 * percent;
}

/* A counter of the first GPU says that it worked for this share of the time. */
static void count_busy(struct span span, u32 percent)
{
	struct snapshot *const both[] = { span.before, span.after };

	for (u32 i = 0; i < 2; i++) {
		struct snapshot_gpu *gpu = both[i]->gpus;

		gpu->valid |= SNAPSHOT_GPU_BUSY_TIME;
		gpu->busy_counter = GPU_COUNTER_GPM;
		gpu->busy_at_ns = both[i]->monotonic_ns;
		gpu->busy_ns = i * SPAN_NS / 100 * percent;
	}
}

static void test_open_time_is_a_range(void **state)
{
	struct span span = span_new(1);

	idle(span, 0, IDLE_DISK, 20, NULL);
	open_time(span, IDLE_DISK, 45);
	assert_shows(span, NULL,
		     "was idle between 20 and 65 % of the last 5.0 s (from syncs), mostly because "
		     "its launching thread waited for a disk.\n",
		     true);
	assert_shows(span, NULL, " 20.0-65.0%  from syncs\n", true);
	assert_shows(span, NULL, " 35.0-80.0%  \n", true);
	span_free(span);
	/* It may have been busy all the time. */
	span = span_new(1);
	open_time(span, IDLE_DISK, 45);
	assert_shows(span, NULL,
		     "was idle between 0 and 45 % of the last 5.0 s (from syncs); if it was idle, "
		     "mostly because its launching thread waited for a disk.\n",
		     true);
	span_free(span);
	/* 3 points are one number. */
	span = span_new(1);
	idle(span, 0, IDLE_DISK, 20, NULL);
	open_time(span, IDLE_DISK, 3);
	assert_shows(span, NULL, "was idle 22 % of the last 5.0 s, mostly", true);
	open_time(span, IDLE_DISK, 1);
	assert_shows(span, NULL, "was idle between 20 and 24 % of", true);
	span_free(span);
}

static void test_driver_measures_the_idle_share(void **state)
{
	struct span span = span_new(1);

	open_time(span, IDLE_CPU, 95);
	count_busy(span, 31);
	assert_shows(span, NULL,
		     "was idle 69 % of the last 5.0 s (measured by the driver), mostly because its "
		     "launching thread computed between launches.\n",
		     true);
	assert_shows(span, NULL, "    69.0%  measured by the driver\n", true);
	/* Most of the time of the same cause is known from syncs. */
	idle(span, 0, IDLE_CPU, 3, NULL);
	assert_shows(span, NULL, "computed between launches", true);
	span_free(span);
	span = span_new(1);
	idle(span, 0, IDLE_CPU, 40, NULL);
	open_time(span, IDLE_CPU, 50);
	count_busy(span, 55);
	assert_shows(span, NULL,
		     "was idle 45 % of the last 5.0 s (measured by the driver), mostly because its "
		     "launching thread computed.\n",
		     true);
	span_free(span);
}

static void test_no_cause_if_the_driver_disagrees(void **state)
{
	struct span span = span_new(1);

	idle(span, 0, IDLE_CPU, 40, NULL);
	count_busy(span, 90);
	assert_shows(
		span, NULL,
		"was idle 40 % of the last 5.0 s, but the driver measured 10 %. The calls that "
		"Zernel sees do not explain the difference, so no cause is named.\n",
		true);
	assert_shows(span, NULL, "idle, measured by the driver     5.00    10.0%  \n", true);
	assert_shows(span, NULL, "because", false);
	assert_shows(span, NULL, "launcher computed", false);
	assert_shows(span, NULL, "->", false);
	span_free(span);
}

/* `percent` of the time is idle, in spans of this length, and there are no loaders. */
static struct span server(u32 cause, u32 percent, u64 span_ms)
{
	struct span span = span_new(1);
	struct snapshot_process *process = &span.after->processes[0];
	struct hist *spans = snapshot_add_hist(span.after, &process->hists, HIST_IDLE);

	process->nr_ranks = 0;
	span.after->nr_threads = 1;
	idle(span, 0, cause, percent, NULL);
	for (u64 ms = span_ms; ms <= SPAN_NS / 100 * percent / NSEC_PER_MSEC; ms += span_ms)
		hist_record(spans, span_ms * NSEC_PER_MSEC);
	return span;
}

static void test_server_without_requests(void **state)
{
	static const u32 causes[] = { IDLE_CPU, IDLE_OTHER, IDLE_LOCK };
	struct span span;

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		/* The GPU works for 5 ms per step. */
		span = server(causes[i], 90, 100);
		assert_shows(span, NULL,
			     "was idle 90 % of the last 5.0 s, mostly because there were no "
			     "requests.\n",
			     true);
		assert_shows(span, NULL, "\nno requests    45.00    90.0%  \n", true);
		assert_shows(span, NULL, "->", false);
		span_free(span);
	}
	/* Idle spans of a loop are shorter. */
	span = server(IDLE_CPU, 90, 45);
	assert_shows(span, NULL, "no requests", false);
	assert_shows(span, NULL, "-> The launching thread computes", true);
	span_free(span);
	/* A job with loaders, with optimizer steps or with another cause is not a server. */
	span = server(IDLE_CPU, 90, 100);
	span.after->nr_threads = 2;
	assert_shows(span, NULL, "no requests", false);
	span.after->nr_threads = 1;
	span.after->processes[0].step_basis = STEP_BASIS_OPTIMIZER;
	assert_shows(span, NULL, "no requests", false);
	span.after->processes[0].step_basis = STEP_BASIS_ITERATION;
	assert_shows(span, NULL, "no requests", true);
	span_free(span);
	span = server(IDLE_DISK, 90, 100);
	assert_shows(span, NULL, "no requests", false);
	span_free(span);
	/* A process that the server forked brings requests; a loader of a loop brings data. */
	span = server(IDLE_LOADER_OTHER, 90, 100);
	span.after->nr_threads = 2;
	assert_shows(span, NULL, "no requests", false);
	span.after->processes[0].step_basis = STEP_BASIS_ITERATION;
	assert_shows(span, NULL, "no requests", true);
	assert_shows(span, NULL, "->", false);
	span_free(span);
	span = server(IDLE_LOADER_CPU, 90, 100);
	span.after->processes[0].step_basis = STEP_BASIS_ITERATION;
	assert_shows(span, NULL, "no requests", false);
	span_free(span);
	/* Without any step, the GPU must be idle almost all the time. */
	span = server(IDLE_OTHER, 94, 100);
	span.after->processes[0].nr_steps = span.before->processes[0].nr_steps;
	assert_shows(span, NULL, "no requests", false);
	idle(span, 0, IDLE_OTHER, 1, NULL);
	assert_shows(span, NULL, "no requests", true);
	span_free(span);
}

static void test_basis_of_steps(void **state)
{
	static const char *const texts[STEP_BASIS_NR] = {
		"100 steps, mean",
		"100 steps by syncs, mean",
		"100 steps by iterations, mean",
		"100 steps by optimizer scopes, mean",
	};
	struct span span = span_new(1);

	for (u32 basis = 0; basis < STEP_BASIS_NR; basis++) {
		span.after->processes[0].step_basis = basis;
		assert_shows(span, NULL, texts[basis], true);
	}
	span.after->processes[0].nr_steps = span.before->processes[0].nr_steps;
	assert_shows(span, NULL, "no step ended; GPU busy for at least 5.0 s", true);
	span_free(span);
}

static void assert_json(struct span span, const char *text)
{
	const struct why_options options = { .json = true };
	char *answer = print(span, &options, (struct term){}, 0);

	if (!strstr(answer, text))
		fail_msg("%s is not in %s", text, answer);
	free(answer);
}

static void test_unproven_process(void **state)
{
	struct span span = span_new(1);

	span.after->sched.state = SCHED_ATTACHED;
	idle(span, 0, IDLE_RUNQUEUE, 40, NULL);
	assert_shows(span, NULL, "unproven", false);
	assert_json(span, "\"gpu_evidence\":\"unknown\"");
	span.after->processes[0].gpu_evidence = GPU_EVIDENCE_NONE;
	assert_json(span, "\"gpu_evidence\":\"none\"");
	assert_shows(span, NULL,
		     "unproven: process 4711 has opened no GPU, so the scheduler does not promote "
		     "it\n",
		     true);
	assert_shows(span, NULL, "-> zerneld does not promote process 4711", true);
	assert_shows(span, NULL, "The scheduler already runs", false);
	span.after->processes[0].gpu_evidence = GPU_EVIDENCE_DEVICE;
	assert_shows(span, NULL, "unproven", false);
	assert_shows(span, NULL, "The scheduler already runs", true);
	span_free(span);
}

static void test_nice_values_act_instead_of_the_scheduler(void **state)
{
	struct span span = span_new(1);

	span.after->sched.actuator = ACTUATOR_NICE;
	idle(span, 0, IDLE_RUNQUEUE, 40, NULL);
	assert_shows(span, NULL, "-> Nice values already prefer launchers", true);
	assert_shows(span, NULL, "The scheduler is off", false);
	span.after->processes[0].gpu_evidence = GPU_EVIDENCE_NONE;
	assert_shows(span, NULL, "-> zerneld does not promote process 4711", true);
	assert_shows(span, NULL, "Nice values already", false);
	span_free(span);
}

static void test_json_has_range_basis_and_cause(void **state)
{
	struct span span = server(IDLE_OTHER, 90, 100);

	span.after->processes[0].step_basis = STEP_BASIS_ITERATION;
	assert_json(span, "\"cause\":\"no_requests\"");
	assert_json(span, "\"step_basis\":\"iteration\"");
	span_free(span);
	span = span_new(1);
	idle(span, 0, IDLE_DISK, 20, NULL);
	open_time(span, IDLE_CPU, 40);
	assert_json(span, "\"idle_ns\":2000000000,\"idle_min_ns\":1000000000,"
			  "\"idle_max_ns\":3000000000,\"basis\":\"syncs\",\"disagrees\":false,"
			  "\"cause\":");
	count_busy(span, 50);
	assert_json(span, "\"basis\":\"driver\",\"disagrees\":false,\"cause\":\"cpu\"");
	count_busy(span, 20);
	assert_json(span, "\"basis\":\"syncs\",\"disagrees\":true,\"driver_idle_ns\":40000");
	span_free(span);
}

static void test_json_is_one_stable_line(void **state)
{
	const struct why_options options = { .json = true };
	struct span span = span_new(2);
	char *first, *second;

	idle(span, 0, IDLE_RUNQUEUE, 40, "cc\"1");
	wait_for_ranks(span, 1, 40);
	span.after->gpus[0].valid = 0;
	first = print(span, &options, (struct term){}, 0);
	second =
		print(span, &options, (struct term){ .colour = true, .width = 40, .height = 9 }, 0);
	assert_string_equal(first, second);
	assert_ptr_equal(strchr(first, '\n'), first + strlen(first) - 1);
	assert_non_null(strstr(first, "\"causes\":{\"cpu\":0,\"runqueue\":2000000000,"));
	assert_non_null(
		strstr(first, "{\"cause\":\"runqueue\",\"name\":\"cc\\\"1\",\"ns\":2000000000}"));
	assert_non_null(strstr(first, "\"steps\":{\"count\":100,\"mean_ns\":50000000,"));
	assert_non_null(strstr(first, "\"waited_for_ranks_max_ns\":0"));
	assert_non_null(strstr(first, "\"waited_for_ranks_max_ns\":2000000000"));
	assert_non_null(strstr(first,
			       "\"straggler\":{\"rank\":0,\"pid\":4711,\"lead_ns\":2000000000,"
			       "\"is_measured\":false}"));
	assert_non_null(strstr(first, "\"advice\":[\"The scheduler is off."));
	free(first);
	free(second);
	span_free(span);
}

static void test_terminal_gets_one_screen(void **state)
{
	struct span span = span_new(64);
	const struct why_options options = {};
	char *text = print(span, &options, (struct term){ .width = 80, .height = 24 }, 0);
	u32 nr_lines = 0;

	for (const char *at = text; *at; at++)
		nr_lines += *at == '\n';
	assert_true(nr_lines <= 24);
	assert_non_null(strstr(text, "... and 58 more"));
	free(text);
	span_free(span);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_answer),
		cmocka_unit_test(test_busy_gpu_is_not_explained),
		cmocka_unit_test(test_advice_depends_on_evidence),
		cmocka_unit_test(test_no_advice_without_evidence),
		cmocka_unit_test(test_unproven_process),
		cmocka_unit_test(test_nice_values_act_instead_of_the_scheduler),
		cmocka_unit_test(test_straggler_is_named),
		cmocka_unit_test(test_straggler_that_computes),
		cmocka_unit_test(test_last_rank_without_measurement),
		cmocka_unit_test(test_upper_bound_is_marked),
		cmocka_unit_test(test_selection_of_processes),
		cmocka_unit_test(test_reason_for_no_answer),
		cmocka_unit_test(test_no_steps),
		cmocka_unit_test(test_open_time_is_a_range),
		cmocka_unit_test(test_driver_measures_the_idle_share),
		cmocka_unit_test(test_no_cause_if_the_driver_disagrees),
		cmocka_unit_test(test_server_without_requests),
		cmocka_unit_test(test_basis_of_steps),
		cmocka_unit_test(test_json_has_range_basis_and_cause),
		cmocka_unit_test(test_json_is_one_stable_line),
		cmocka_unit_test(test_terminal_gets_one_screen),
	};

	return cmocka_run_group_tests_name("zernel why", tests, NULL, NULL);
}
