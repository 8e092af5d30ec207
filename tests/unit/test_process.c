/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/process.h"

#define MS NSEC_PER_MSEC

static const struct phase_config config = PHASE_CONFIG_DEFAULT;

static struct process_state ml_process(void)
{
	return (struct process_state){ .task.signals.is_ml = 1 };
}

static void test_data_types_have_sizes(void **state)
{
	assert_int_equal(collective_bytes(10, 7), 40); /* fp32 */
	assert_int_equal(collective_bytes(10, 9), 20); /* bf16 */
	assert_int_equal(collective_bytes(10, 12), 0); /* no such type */
}

static void test_copy_in_the_middle_of_a_write_is_told(void **state)
{
	struct process_state process = ml_process();

	assert_true(process_is_whole(&process));
	process.nr_writes_begun++;
	assert_false(process_is_whole(&process));
	process.nr_writes_done++;
	assert_true(process_is_whole(&process));
}

static void test_data_wait_is_booked(void **state)
{
	struct process_state process = ml_process();

	task_transition(&process.task, PHASE_OPTIMIZER, 100 * MS);
	assert_true(process_data_wait(&config, &process, 101 * MS));
	assert_int_equal(process.task.phase, PHASE_DATA_LOADING);
	process.woken_with_data = 1;
	assert_int_equal(process_data_ready(&config, &process, 108 * MS), 7 * MS);
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
	assert_int_equal(process.task.phase_ns[PHASE_OPTIMIZER], 1 * MS);
	assert_int_equal(process.task.phase_ns[PHASE_DATA_LOADING], 7 * MS);
	assert_int_equal(process.data_wait_ns, 7 * MS);
	assert_int_equal(process.data_wait_since_ns, 0);
}

/* Woken by anybody else: as if it had never been. */
static void test_other_wait_is_taken_back(void **state)
{
	struct process_state process = ml_process();

	task_transition(&process.task, PHASE_OPTIMIZER, 100 * MS);
	process_data_wait(&config, &process, 101 * MS);
	assert_int_equal(process_data_ready(&config, &process, 102 * MS), 0);
	assert_int_equal(process.task.phase, PHASE_OPTIMIZER);
	assert_int_equal(process.task.phase_since_ns, 100 * MS);
	assert_int_equal(process.task.nr_transitions, 1);
	boundary_cross(&config, &process.task, BOUNDARY_LAUNCH, 103 * MS);
	assert_int_equal(process.task.phase_ns[PHASE_OPTIMIZER], 3 * MS);
	assert_int_equal(process.task.phase_ns[PHASE_DATA_LOADING], 0);
}

/* It would count as a call's otherwise, and a call's ends at the bound. */
static void test_inferred_phase_is_inferred_again_after_a_wait_was_taken_back(void **state)
{
	struct process_state process = ml_process();

	task_transition(&process.task, PHASE_OPTIMIZER, 100 * MS);
	process.task.inferred = 1;
	process_data_wait(&config, &process, 101 * MS);
	process_data_ready(&config, &process, 102 * MS);
	assert_int_equal(process.task.inferred, 1);
}

/* What readers are told of a wait that may be taken back: nothing yet. */
static void test_wait_is_counted_once_it_is_certain(void **state)
{
	struct process_state process = ml_process();

	task_transition(&process.task, PHASE_OPTIMIZER, 100 * MS);
	process_data_wait(&config, &process, 101 * MS);
	assert_int_equal(process_nr_transitions(&process), 1);
	process_data_ready(&config, &process, 102 * MS);
	assert_int_equal(process_nr_transitions(&process), 1);
	process_data_wait(&config, &process, 103 * MS);
	process.woken_with_data = 1;
	assert_int_equal(process_nr_transitions(&process), 2);
	process_data_ready(&config, &process, 104 * MS);
	assert_int_equal(process_nr_transitions(&process), 3);
}

/* The device is fed: a sleeping launcher changes nothing, and nothing is taken back. */
static void test_wait_while_the_device_is_busy(void **state)
{
	struct process_state process = ml_process();

	task_transition(&process.task, PHASE_GPU_COMPUTE, 100 * MS);
	assert_false(process_data_wait(&config, &process, 101 * MS));
	process_data_ready(&config, &process, 102 * MS);
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(process.task.phase_since_ns, 100 * MS);
}

static void look(struct process_state *process, u64 io_wait_ns, u64 now)
{
	process->window.io_wait_ns = io_wait_ns;
	process_infer(&config, process, 0, false, now);
}

static void test_inference_needs_three_looks(void **state)
{
	struct process_state process = ml_process();

	look(&process, 0, 100 * MS); /* the first only opens the window */
	look(&process, 10 * MS, 120 * MS);
	look(&process, 10 * MS, 125 * MS); /* too early to count */
	look(&process, 10 * MS, 140 * MS);
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
	look(&process, 10 * MS, 160 * MS);
	assert_int_equal(process.task.phase, PHASE_DATA_LOADING);
	assert_int_equal(process.task.inferred, 1);
	/* A call knows better, at once. */
	boundary_cross(&config, &process.task, BOUNDARY_LAUNCH, 161 * MS);
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(process.task.inferred, 0);
}

static void test_inference_leaves_a_boundary_alone(void **state)
{
	struct process_state process = ml_process();

	look(&process, 0, 100 * MS);
	boundary_cross(&config, &process.task, BOUNDARY_LAUNCH, 101 * MS);
	for (u64 now = 120 * MS; now < 400 * MS; now += 20 * MS)
		look(&process, 20 * MS, now);
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(process.task.signals.gpu_utilization, 100);
}

static void test_utilization_is_the_samplers_or_the_spans(void **state)
{
	struct process_state process = ml_process();

	process_infer(&config, &process, 0, false, 100 * MS);
	boundary_cross(&config, &process.task, BOUNDARY_LAUNCH, 110 * MS);
	boundary_cross(&config, &process.task, BOUNDARY_SYNC_DONE, 115 * MS);
	process_infer(&config, &process, 0, false, 120 * MS);
	assert_int_equal(process.task.signals.gpu_utilization, 25);
	process_infer(&config, &process, 73, true, 140 * MS);
	assert_int_equal(process.task.signals.gpu_utilization, 73);
}

/* With a sampler that says so, the device is busy; `burst_ns` unless it is 0 ends in each window.
 */
static u32 phase_after_windows(struct process_state *process, u64 burst_ns)
{
	for (u64 now = 100 * MS; now <= 200 * MS; now += 20 * MS) {
		if (burst_ns)
			process_burst(process, burst_ns);
		process_infer(&config, process, 95, true, now);
	}
	return process->task.phase;
}

static void test_the_latest_burst_is_kept(void **state)
{
	struct process_state process = ml_process();

	process_burst(&process, 7 * MS);
	process_burst(&process, 2 * MS);
	phase_after_windows(&process, 0);
	assert_int_equal(process.task.signals.burst_ns, 2 * MS);
}

/* Rule 4 asks for a launcher without a burst: one of long ago is none. */
static void test_a_window_without_a_burst_has_a_burst_of_zero(void **state)
{
	struct process_state process = ml_process();

	process.task.signals.last_sync_ns = 1;
	assert_int_equal(phase_after_windows(&process, 2 * MS), PHASE_OPTIMIZER);
	process.window.since_ns = 0;
	assert_int_equal(phase_after_windows(&process, 0), PHASE_GPU_COMPUTE);
}

/* Detection on, with a believed row of waits for other ranks before it. */
static const struct phase_config detecting = { .optimizer_burst_max_ns = 5 * MS,
					       .gpu_idle_threshold = 10,
					       .gpu_active_threshold = 80,
					       .io_wait_threshold = 300,
					       .phase_stability_count = 3,
					       .nccl_detection_enabled = 1 };

static struct process_state rank_process(void)
{
	struct process_state process = ml_process();

	process.task.signals.collective_mapped = 1;
	task_transition(&process.task, PHASE_OPTIMIZER, 100 * MS);
	return process;
}

/* A whole sleep on a futex outside of any call, as the kernel side follows it. */
static bool sleep_on_futex(const struct phase_config *c, struct process_state *process,
			   struct rank_wait *wait, u64 since, enum rank_wait_end end, u64 now)
{
	process_data_wait(c, process, since);
	wait->since_ns = since;
	wait->end = end;
	process->woken_with_data = end == RANK_WAIT_FAMILY;
	process_data_ready(c, process, now);
	return process_rank_ready(c, process, wait);
}

static void test_waits_for_ranks_in_a_row_are_a_collective(void **state)
{
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	for (u64 now = 101 * MS; now < 103 * MS; now += MS)
		assert_false(sleep_on_futex(&detecting, &process, &wait, now, RANK_WAIT_RANK,
					    now + MS / 2));
	assert_int_equal(process.task.phase, PHASE_OPTIMIZER);
	assert_int_equal(process.task.phase_ns[PHASE_DATA_LOADING], 0);
	assert_true(
		sleep_on_futex(&detecting, &process, &wait, 103 * MS, RANK_WAIT_RANK, 110 * MS));
	assert_int_equal(process.task.phase, PHASE_COLLECTIVE);
	assert_int_equal(process.task.phase_since_ns, 103 * MS);
	assert_int_equal(process.task.inferred, 1);
	/* The next one is in it; a launch ends it, and the one after the launch is believed. */
	assert_false(
		sleep_on_futex(&detecting, &process, &wait, 111 * MS, RANK_WAIT_RANK, 113 * MS));
	boundary_cross(&detecting, &process.task, BOUNDARY_LAUNCH, 115 * MS);
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(process.task.inferred, 0);
	assert_int_equal(process.task.phase_ns[PHASE_COLLECTIVE], 12 * MS);
	assert_int_equal(process.task.phase_ns[PHASE_OPTIMIZER], 3 * MS);
	assert_int_equal(process.task.phase_ns[PHASE_DATA_LOADING], 0);
	boundary_cross(&detecting, &process.task, BOUNDARY_SYNC_DONE, 120 * MS);
	assert_true(
		sleep_on_futex(&detecting, &process, &wait, 121 * MS, RANK_WAIT_RANK, 122 * MS));
}

static void test_rank_waits_need_detection_and_a_library(void **state)
{
	struct phase_config off = detecting;
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	off.nccl_detection_enabled = 0;
	for (u64 now = 101 * MS; now < 120 * MS; now += MS)
		assert_false(
			sleep_on_futex(&off, &process, &wait, now, RANK_WAIT_RANK, now + MS / 2));
	process.task.signals.collective_mapped = 0;
	for (u64 now = 121 * MS; now < 140 * MS; now += MS)
		assert_false(sleep_on_futex(&detecting, &process, &wait, now, RANK_WAIT_RANK,
					    now + MS / 2));
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
	assert_int_equal(process.task.phase_ns[PHASE_COLLECTIVE], 0);
}

/* A wait that nobody of either side ended begins a new row, one for data does not. */
static void test_what_ends_a_row_of_rank_waits(void **state)
{
	static const struct {
		enum rank_wait_end third;
		bool is_believed;
	} cases[] = { { RANK_WAIT_OTHER, false }, { RANK_WAIT_FAMILY, true } };

	for (u32 i = 0; i < 2; i++) {
		struct process_state process = rank_process();
		struct rank_wait wait = {};

		sleep_on_futex(&detecting, &process, &wait, 101 * MS, RANK_WAIT_RANK, 102 * MS);
		sleep_on_futex(&detecting, &process, &wait, 103 * MS, RANK_WAIT_RANK, 104 * MS);
		sleep_on_futex(&detecting, &process, &wait, 105 * MS, cases[i].third, 106 * MS);
		assert_int_equal(sleep_on_futex(&detecting, &process, &wait, 107 * MS,
						RANK_WAIT_RANK, 108 * MS),
				 cases[i].is_believed);
	}
}

/* After a collective the launcher waits for data: known when a loader ends the wait. */
static void test_data_wait_ends_an_inferred_collective(void **state)
{
	struct phase_config at_once = detecting;
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	at_once.phase_stability_count = 1;
	assert_true(sleep_on_futex(&at_once, &process, &wait, 101 * MS, RANK_WAIT_RANK, 104 * MS));
	assert_false(
		sleep_on_futex(&at_once, &process, &wait, 105 * MS, RANK_WAIT_FAMILY, 112 * MS));
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
	assert_int_equal(process.task.phase_ns[PHASE_COLLECTIVE], 4 * MS);
	assert_int_equal(process.task.phase_ns[PHASE_DATA_LOADING], 7 * MS);
	assert_int_equal(process.data_wait_ns, 7 * MS);
}

/* Where calls say when collectives are, waits are for something else. */
static void test_called_collectives_are_not_inferred(void **state)
{
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	process.nr_collectives[COLLECTIVE_NR - 1] = 1;
	for (u64 now = 101 * MS; now < 120 * MS; now += MS)
		assert_false(sleep_on_futex(&detecting, &process, &wait, now, RANK_WAIT_RANK,
					    now + MS / 2));
}

/* Call boundaries are stronger, and a fed device is one. */
static void test_rank_waits_leave_a_boundary_alone(void **state)
{
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	boundary_cross(&detecting, &process.task, BOUNDARY_LAUNCH, 101 * MS);
	for (u64 now = 102 * MS; now < 120 * MS; now += MS)
		assert_false(sleep_on_futex(&detecting, &process, &wait, now, RANK_WAIT_RANK,
					    now + MS / 2));
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
}

/* Looks keep the collective while ranks are waited for, and end it when they are not. */
static void test_looks_end_an_inferred_collective(void **state)
{
	struct phase_config at_once = detecting;
	struct process_state process = rank_process();
	struct rank_wait wait = {};
	u64 now = 120 * MS;

	process_infer(&detecting, &process, 0, true, 100 * MS);
	at_once.phase_stability_count = 1;
	sleep_on_futex(&at_once, &process, &wait, 101 * MS, RANK_WAIT_RANK, 104 * MS);
	for (; now < 300 * MS; now += 20 * MS) {
		process.window.nr_rank_waits = 1;
		process_infer(&detecting, &process, 0, true, now);
	}
	assert_int_equal(process.task.phase, PHASE_COLLECTIVE);
	/* Any thread's wait for any lock is counted, and no evidence. */
	for (; now < 360 * MS; now += 20 * MS) {
		process.window.nr_futex_waits = 10;
		process_infer(&detecting, &process, 0, true, now);
		assert_int_equal(process.task.signals.nr_futex_waits, 10);
	}
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
}

static void test_every_label_is_its_own(void **state)
{
	for (u32 i = 0; i < ROLE_NR; i++)
		for (u32 j = 0; j < i; j++)
			assert_string_not_equal(role_label(i), role_label(j));
	assert_string_equal(role_label(ROLE_NR), role_label(ROLE_OTHER));
	for (u32 i = 0; i < COLLECTIVE_NR; i++)
		for (u32 j = 0; j < i; j++)
			assert_string_not_equal(operation_label(i), operation_label(j));
	assert_string_equal(operation_label(DETAIL_BARRIER - COLLECTIVE_FIRST), "barrier");
	assert_string_equal(operation_label(COLLECTIVE_NR), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_types_have_sizes),
		cmocka_unit_test(test_copy_in_the_middle_of_a_write_is_told),
		cmocka_unit_test(test_data_wait_is_booked),
		cmocka_unit_test(test_other_wait_is_taken_back),
		cmocka_unit_test(test_inferred_phase_is_inferred_again_after_a_wait_was_taken_back),
		cmocka_unit_test(test_wait_is_counted_once_it_is_certain),
		cmocka_unit_test(test_wait_while_the_device_is_busy),
		cmocka_unit_test(test_inference_needs_three_looks),
		cmocka_unit_test(test_inference_leaves_a_boundary_alone),
		cmocka_unit_test(test_utilization_is_the_samplers_or_the_spans),
		cmocka_unit_test(test_the_latest_burst_is_kept),
		cmocka_unit_test(test_a_window_without_a_burst_has_a_burst_of_zero),
		cmocka_unit_test(test_waits_for_ranks_in_a_row_are_a_collective),
		cmocka_unit_test(test_rank_waits_need_detection_and_a_library),
		cmocka_unit_test(test_what_ends_a_row_of_rank_waits),
		cmocka_unit_test(test_data_wait_ends_an_inferred_collective),
		cmocka_unit_test(test_called_collectives_are_not_inferred),
		cmocka_unit_test(test_rank_waits_leave_a_boundary_alone),
		cmocka_unit_test(test_looks_end_an_inferred_collective),
		cmocka_unit_test(test_every_label_is_its_own),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
