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

static void test_sizes_of_data_types(void **state)
{
	assert_int_equal(collective_bytes(10, 7), 40); /* fp32 */
	assert_int_equal(collective_bytes(10, 9), 20); /* bf16 */
	assert_int_equal(collective_bytes(10, 12), 0); /* no such type */
}

static void test_copy_during_a_write_is_detected(void **state)
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

/* Another task than a loader ended the wait, so the change of phase is undone. */
static void test_other_wait_is_undone(void **state)
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

/* Otherwise the phase would count as certain and would end at the time bound. */
static void test_inferred_phase_stays_inferred_after_an_undone_wait(void **state)
{
	struct process_state process = ml_process();

	task_transition(&process.task, PHASE_OPTIMIZER, 100 * MS);
	process.task.inferred = 1;
	process_data_wait(&config, &process, 101 * MS);
	process_data_ready(&config, &process, 102 * MS);
	assert_int_equal(process.task.inferred, 1);
}

/* A wait that may still be undone is not reported. */
static void test_wait_is_counted_when_it_is_certain(void **state)
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

/* The GPU has work: a sleeping launcher does not change the phase, so nothing is undone. */
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

static void test_inference_needs_three_samples(void **state)
{
	struct process_state process = ml_process();

	look(&process, 0, 100 * MS); /* the first sample only opens the window */
	look(&process, 10 * MS, 120 * MS);
	look(&process, 10 * MS, 125 * MS); /* too early to count */
	look(&process, 10 * MS, 140 * MS);
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
	look(&process, 10 * MS, 160 * MS);
	assert_int_equal(process.task.phase, PHASE_DATA_LOADING);
	assert_int_equal(process.task.inferred, 1);
	/* A call boundary overrides it immediately. */
	boundary_cross(&config, &process.task, BOUNDARY_LAUNCH, 161 * MS);
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(process.task.inferred, 0);
}

static void test_inference_does_not_override_a_boundary(void **state)
{
	struct process_state process = ml_process();

	look(&process, 0, 100 * MS);
	boundary_cross(&config, &process.task, BOUNDARY_LAUNCH, 101 * MS);
	for (u64 now = 120 * MS; now < 400 * MS; now += 20 * MS)
		look(&process, 20 * MS, now);
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(process.task.signals.gpu_utilization, 100);
}

static void test_utilization_comes_from_the_sampler_or_from_calls(void **state)
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

/* The sampler reports a busy GPU. A burst of `burst_ns` ends in each window, unless it is 0. */
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

/* Rule 4 needs a launcher without a burst. A burst before the window does not count. */
static void test_a_window_without_a_burst_has_a_burst_of_zero(void **state)
{
	struct process_state process = ml_process();

	process.task.signals.last_sync_ns = 1;
	assert_int_equal(phase_after_windows(&process, 2 * MS), PHASE_OPTIMIZER);
	process.window.since_ns = 0;
	assert_int_equal(phase_after_windows(&process, 0), PHASE_GPU_COMPUTE);
}

/* The defaults, with detection of collectives enabled. */
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

/* A complete sleep on a futex outside of any runtime call, as the BPF programs handle it. */
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
	/* The next wait is part of it. A launch ends it. The wait after the launch counts. */
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

/* A wait that an unrelated task ended restarts the row. A wait for data does not. */
static void test_end_of_a_row_of_rank_waits(void **state)
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

/* After a collective, the launcher waits for data. This is known when a loader ends the wait. */
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

/* If collective calls were seen, futex waits are no evidence for collectives. */
static void test_collectives_with_traced_calls_are_not_inferred(void **state)
{
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	process.nr_collectives[COLLECTIVE_NR - 1] = 1;
	for (u64 now = 101 * MS; now < 120 * MS; now += MS)
		assert_false(sleep_on_futex(&detecting, &process, &wait, now, RANK_WAIT_RANK,
					    now + MS / 2));
}

/* A call boundary has precedence over waits for other ranks. */
static void test_rank_waits_do_not_override_a_boundary(void **state)
{
	struct process_state process = rank_process();
	struct rank_wait wait = {};

	boundary_cross(&detecting, &process.task, BOUNDARY_LAUNCH, 101 * MS);
	for (u64 now = 102 * MS; now < 120 * MS; now += MS)
		assert_false(sleep_on_futex(&detecting, &process, &wait, now, RANK_WAIT_RANK,
					    now + MS / 2));
	assert_int_equal(process.task.phase, PHASE_GPU_COMPUTE);
}

/* The collective lasts while samples show waits for other ranks, and ends when they stop. */
static void test_samples_end_an_inferred_collective(void **state)
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
	/* Futex waits on ordinary locks are counted but are no evidence. */
	for (; now < 360 * MS; now += 20 * MS) {
		process.window.nr_futex_waits = 10;
		process_infer(&detecting, &process, 0, true, now);
		assert_int_equal(process.task.signals.nr_futex_waits, 10);
	}
	assert_int_equal(process.task.phase, PHASE_UNKNOWN);
}

static void test_labels_are_unique(void **state)
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
		cmocka_unit_test(test_sizes_of_data_types),
		cmocka_unit_test(test_copy_during_a_write_is_detected),
		cmocka_unit_test(test_data_wait_is_booked),
		cmocka_unit_test(test_other_wait_is_undone),
		cmocka_unit_test(test_inferred_phase_stays_inferred_after_an_undone_wait),
		cmocka_unit_test(test_wait_is_counted_when_it_is_certain),
		cmocka_unit_test(test_wait_while_the_device_is_busy),
		cmocka_unit_test(test_inference_needs_three_samples),
		cmocka_unit_test(test_inference_does_not_override_a_boundary),
		cmocka_unit_test(test_utilization_comes_from_the_sampler_or_from_calls),
		cmocka_unit_test(test_the_latest_burst_is_kept),
		cmocka_unit_test(test_a_window_without_a_burst_has_a_burst_of_zero),
		cmocka_unit_test(test_waits_for_ranks_in_a_row_are_a_collective),
		cmocka_unit_test(test_rank_waits_need_detection_and_a_library),
		cmocka_unit_test(test_end_of_a_row_of_rank_waits),
		cmocka_unit_test(test_data_wait_ends_an_inferred_collective),
		cmocka_unit_test(test_collectives_with_traced_calls_are_not_inferred),
		cmocka_unit_test(test_rank_waits_do_not_override_a_boundary),
		cmocka_unit_test(test_samples_end_an_inferred_collective),
		cmocka_unit_test(test_labels_are_unique),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
