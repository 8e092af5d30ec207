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
		cmocka_unit_test(test_every_label_is_its_own),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
