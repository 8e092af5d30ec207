/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the state that zernel top keeps between snapshots. */
#include "top/made.h"

#define MS NSEC_PER_MSEC

/* Each second: 10 steps of 100 ms, a quarter of the time idle, 5 waits of 1 ms. */
static struct snapshot *at_work(u64 second)
{
	struct snapshot *s = made_snapshot(second);
	struct snapshot_process *process = made_process(s, 7, 0, "train");
	struct hist *steps = snapshot_add_hist(s, &process->hists, HIST_STEP);
	struct hist *waits = snapshot_add_hist(s, &process->hists, HIST_RUNQUEUE_WAIT);

	process->nr_steps = 10 * second;
	process->busy_ns = 750 * MS * second;
	process->idle_ns[IDLE_DISK] = 200 * MS * second;
	process->idle_ns[IDLE_CPU] = 50 * MS * second;
	process->phase = PHASE_GPU_COMPUTE;
	process->phase_ns[PHASE_GPU_COMPUTE] = 600 * MS * second;
	process->phase_ns[PHASE_DATA_LOADING] = 400 * MS * second;
	for (u64 i = 0; i < 10 * second; i++)
		hist_record(steps, 100 * MS);
	for (u64 i = 0; i < 5 * second; i++)
		hist_record(waits, MS);
	s->sched.classes[CLASS_FEEDER].nr[DECISION_QUEUED] = 100 * second;
	s->cost.cpu_ns = 10 * MS * second;
	return s;
}

static void feed(struct top_model *model, struct snapshot *snapshot)
{
	assert_int_equal(top_model_feed(model, snapshot), 0);
}

static void test_first_snapshot_has_no_rates(void **state)
{
	struct top_model model = {};

	feed(&model, at_work(50));
	assert_int_equal(model.processes[0]->window.nr_steps, 0);
	assert_int_equal(model.processes[0]->window.time_ns, 0);
	assert_int_equal(model.window.cpu_ns, 0);
	top_model_done(&model);
}

static void test_values_cover_the_last_seconds(void **state)
{
	struct top_model model = {};
	struct top_counters *window;
	u32 cause = IDLE_CAUSE_NR;

	for (u64 second = 1; second <= 30; second++) {
		u64 span;

		feed(&model, at_work(second));
		window = &model.processes[0]->window;
		span = window->time_ns / NSEC_PER_SEC;
		assert_true(span <= 10 && (second < 10 || span >= 5));
		assert_int_equal(window->nr_steps, 10 * span);
		assert_int_equal(window->nr_timed_steps, 10 * span);
		assert_int_equal(window->timed_steps_ns, span * NSEC_PER_SEC);
		assert_int_equal(window->runqueue_wait.count, 5 * span);
		assert_int_equal(top_idle_ns(window, &cause), 250 * MS * span);
		assert_int_equal(model.window.nr_decisions[CLASS_FEEDER], 100 * span);
		assert_int_equal(model.window.cpu_ns, 10 * MS * span);
	}
	assert_int_equal(cause, IDLE_DISK);
	assert_int_equal(hist_quantile(&window->runqueue_wait, 990), MS);
	top_model_done(&model);
}

/* Each second: the GPU is certainly busy 10 %, idle 20 %, and the rest is open. */
static struct snapshot *launching(u64 second)
{
	struct snapshot *s = made_snapshot(second);

	for (u32 i = 0; i < 2; i++) {
		struct snapshot_process *process = made_process(s, 7 + i, 1, "train");
		struct snapshot_gpu *gpu = snapshot_add_gpu(s, i);

		process->job = snapshot_add_job(s, "/job", "job");
		process->nr_memory = 1;
		process->memory[0].gpu = i;
		process->busy_ns = 100 * MS * second;
		process->idle_ns[IDLE_DISK] = 200 * MS * second;
		process->open_ns[IDLE_CPU] = 700 * MS * second;
		process->blocked_ns = 100 * MS * second;
		/* Only the first GPU has a counter. */
		if (i)
			continue;
		gpu->valid = SNAPSHOT_GPU_BUSY_TIME;
		gpu->busy_counter = GPU_COUNTER_GPM;
		gpu->busy_ns = 400 * MS * second;
		gpu->busy_at_ns = s->monotonic_ns;
	}
	return s;
}

static void test_idle_time_is_a_range(void **state)
{
	struct top_model model = {};
	const struct top_counters *window;
	u32 cause = IDLE_CAUSE_NR;

	feed(&model, launching(1));
	feed(&model, launching(2));
	window = &model.processes[0]->window;
	assert_in_range(window->idle_min_ns, 595 * MS, 600 * MS);
	assert_in_range(window->idle_max_ns, 600 * MS, 605 * MS);
	assert_in_range(top_idle_ns(window, &cause), 599 * MS, 601 * MS);
	assert_int_equal(cause, IDLE_CPU);
	window = &model.processes[1]->window;
	assert_int_equal(window->idle_min_ns, 200 * MS);
	assert_int_equal(window->idle_max_ns, 800 * MS);
	assert_int_equal(top_idle_ns(window, &cause), 500 * MS);
	assert_int_equal(window->busy_ns, 500 * MS);
	window = &model.jobs[0].window;
	assert_in_range(window->idle_min_ns, 795 * MS, 800 * MS);
	assert_in_range(window->idle_max_ns, 1400 * MS, 1405 * MS);
	top_model_done(&model);
}

static void test_old_waits_leave_the_p99(void **state)
{
	struct top_model model = {};

	for (u64 second = 1; second <= 30; second++) {
		struct snapshot *s = at_work(second);

		/* One wait of a second before the first snapshot. */
		hist_record(snapshot_add_hist(s, &s->processes[0].hists, HIST_RUNQUEUE_WAIT),
			    NSEC_PER_SEC);
		feed(&model, s);
	}
	assert_true(hist_quantile(&model.processes[0]->window.runqueue_wait, 990) < 2 * MS);
	top_model_done(&model);
}

static void test_strip_shows_the_longest_phase_of_the_interval(void **state)
{
	struct top_model model = {};
	struct snapshot *s;

	for (u64 second = 1; second <= 3; second++)
		feed(&model, at_work(second));
	s = at_work(4);
	s->processes[0].phase_ns[PHASE_DATA_LOADING] += 900 * MS;
	feed(&model, s);
	assert_int_equal(top_strip(model.processes[0], 0), PHASE_DATA_LOADING);
	assert_int_equal(top_strip(model.processes[0], 1), PHASE_GPU_COMPUTE);
	assert_int_equal(top_strip(model.processes[0], 3), PHASE_GPU_COMPUTE);
	assert_int_equal(top_strip(model.processes[0], 4), TOP_STRIP_GAP);
	top_model_done(&model);
}

static void test_strip_is_bounded(void **state)
{
	struct top_model model = {};

	for (u64 second = 1; second <= TOP_STRIP_MAX + 10; second++) {
		struct snapshot *s = made_snapshot(second);

		made_process(s, 1, 0, "x")->phase = second % 2 ? PHASE_OPTIMIZER : PHASE_COLLECTIVE;
		feed(&model, s);
	}
	assert_int_equal(top_strip(model.processes[0], 0), PHASE_COLLECTIVE);
	assert_int_equal(top_strip(model.processes[0], TOP_STRIP_MAX - 1), PHASE_OPTIMIZER);
	assert_int_equal(top_strip(model.processes[0], TOP_STRIP_MAX), TOP_STRIP_GAP);
	top_model_done(&model);
}

static void test_restart_of_zerneld_resets_counters(void **state)
{
	struct top_model model = {};
	struct snapshot *s;

	feed(&model, at_work(100));
	feed(&model, at_work(101));
	top_model_gap(&model);
	s = at_work(1);
	s->monotonic_ns = 2000 * NSEC_PER_SEC;
	feed(&model, s);
	assert_int_equal(model.processes[0]->window.nr_steps, 0);
	assert_int_equal(model.processes[0]->window.runqueue_wait.count, 0);
	assert_int_equal(model.window.nr_decisions[CLASS_FEEDER], 0);
	assert_int_equal(top_strip(model.processes[0], 1), TOP_STRIP_GAP);
	/* The same without a gap: the restart may have been fast. */
	s = at_work(2);
	s->monotonic_ns = 2001 * NSEC_PER_SEC;
	feed(&model, s);
	s = at_work(1);
	s->monotonic_ns = 2002 * NSEC_PER_SEC;
	feed(&model, s);
	assert_int_equal(model.processes[0]->window.nr_steps, 0);
	top_model_done(&model);
}

static void test_ended_processes_are_removed_and_pids_can_be_reused(void **state)
{
	struct top_model model = {};
	struct snapshot *s;

	feed(&model, at_work(1));
	model.processes[0]->expanded = true;
	s = at_work(2);
	s->processes[0].start_ns++;
	feed(&model, s);
	assert_false(model.processes[0]->expanded);
	assert_int_equal(model.processes[0]->nr_strip, 1);
	feed(&model, made_snapshot(3));
	assert_int_equal(model.nr_processes, 0);
	top_model_done(&model);
}

static void test_job_sums_its_processes(void **state)
{
	struct top_model model = {};

	for (u64 second = 1; second <= 3; second++) {
		struct snapshot *s = made_snapshot(second);
		u32 job = snapshot_add_job(s, "/a", "a");

		for (u32 i = 0; i < 4; i++) {
			struct snapshot_process *process = made_process(s, 10 + i, job, "rank");

			/* The last process has no steps and is not a rank. */
			process->nr_steps = i < 3 ? 4 * second : 0;
			process->busy_ns = 100 * MS * second;
			process->idle_ns[i] = 100 * MS * second * (i + 1);
			process->nr_memory = 1;
			book_alloc(&process->memory[0].book, 5);
		}
		feed(&model, s);
		model.jobs[0].collapsed = true;
	}
	assert_true(model.jobs[0].collapsed);
	assert_int_equal(model.jobs[0].nr_processes, 4);
	assert_int_equal(model.jobs[0].memory_bytes, 20);
	assert_int_equal(model.jobs[0].window.busy_ns, 800 * MS);
	/* Three ranks with four steps per second each. */
	assert_int_equal(model.jobs[0].window.nr_steps, 24);
	assert_int_equal(model.jobs[0].window.time_ns, 6 * NSEC_PER_SEC);
	top_model_done(&model);
}

static void test_repeated_snapshot_is_ignored(void **state)
{
	struct top_model model = {};

	feed(&model, at_work(1));
	feed(&model, at_work(1));
	assert_int_equal(model.processes[0]->nr_strip, 1);
	top_model_done(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_snapshot_has_no_rates),
		cmocka_unit_test(test_values_cover_the_last_seconds),
		cmocka_unit_test(test_idle_time_is_a_range),
		cmocka_unit_test(test_old_waits_leave_the_p99),
		cmocka_unit_test(test_strip_shows_the_longest_phase_of_the_interval),
		cmocka_unit_test(test_strip_is_bounded),
		cmocka_unit_test(test_restart_of_zerneld_resets_counters),
		cmocka_unit_test(test_ended_processes_are_removed_and_pids_can_be_reused),
		cmocka_unit_test(test_job_sums_its_processes),
		cmocka_unit_test(test_repeated_snapshot_is_ignored),
	};

	return cmocka_run_group_tests_name("the model of zernel top", tests, NULL, NULL);
}
