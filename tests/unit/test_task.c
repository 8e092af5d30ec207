/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/task.h"

static void a_new_task_is_unknown_since_zero(void **state)
{
	struct task_state task = {};

	assert_int_equal(task.phase, PHASE_UNKNOWN);
	assert_int_equal(task.phase_since_ns, 0);
	assert_int_equal(task.has_gpu, 0);
	for (u32 i = 0; i < PHASE_NR; i++)
		assert_int_equal(task.phase_ns[i], 0);
}

static void transitions_book_the_time_between_them(void **state)
{
	struct task_state task = {};

	task_transition(&task, PHASE_DATA_LOADING, 1000);
	task_transition(&task, PHASE_GPU_COMPUTE, 5000);
	task_transition(&task, PHASE_OPTIMIZER, 8000);
	assert_int_equal(task.phase_ns[PHASE_DATA_LOADING], 4000);
	assert_int_equal(task.phase_ns[PHASE_GPU_COMPUTE], 3000);
	assert_int_equal(task.phase_ns[PHASE_OPTIMIZER], 0);
	assert_int_equal(task.phase_ns[PHASE_UNKNOWN], 0);
	assert_int_equal(task.phase, PHASE_OPTIMIZER);
	assert_int_equal(task.phase_since_ns, 8000);
}

static void time_before_the_first_transition_is_not_booked(void **state)
{
	struct task_state task = {};

	task_transition(&task, PHASE_GPU_COMPUTE, 5000);
	assert_int_equal(task.phase_ns[PHASE_UNKNOWN], 0);
}

static void a_clock_that_stops_or_goes_back_books_nothing(void **state)
{
	struct task_state task = { .phase = PHASE_GPU_COMPUTE, .phase_since_ns = 5000 };

	task_transition(&task, PHASE_OPTIMIZER, 5000);
	assert_int_equal(task.phase_ns[PHASE_GPU_COMPUTE], 0);
	task_transition(&task, PHASE_COLLECTIVE, 4000);
	assert_int_equal(task.phase_ns[PHASE_OPTIMIZER], 0);
	assert_int_equal(task.phase, PHASE_COLLECTIVE);
	assert_int_equal(task.phase_since_ns, 4000);
}

static void a_phase_that_is_entered_again_accumulates(void **state)
{
	struct task_state task = { .phase = PHASE_GPU_COMPUTE, .phase_since_ns = 10 };

	task_transition(&task, PHASE_OPTIMIZER, 30);
	task_transition(&task, PHASE_GPU_COMPUTE, 35);
	task_transition(&task, PHASE_GPU_COMPUTE, 42);
	assert_int_equal(task.phase_ns[PHASE_GPU_COMPUTE], 27);
	assert_int_equal(task.phase_ns[PHASE_OPTIMIZER], 5);
}

static void detection_enters_the_phase_when_it_is_stable(void **state)
{
	const struct phase_config config = PHASE_CONFIG_DEFAULT;
	struct task_state task = { .signals = { .is_ml = 1, .gpu_utilization = 95 } };

	task_detect(&config, &task, &task.signals, 100);
	task_detect(&config, &task, &task.signals, 200);
	assert_int_equal(task.phase, PHASE_UNKNOWN);
	task_detect(&config, &task, &task.signals, 300);
	task_detect(&config, &task, &task.signals, 400);
	assert_int_equal(task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(task.phase_since_ns, 300);
	assert_int_equal(task.nr_transitions, 1);
}

int main(void)
{
	const struct CMUnitTest task[] = {
		cmocka_unit_test(a_new_task_is_unknown_since_zero),
		cmocka_unit_test(transitions_book_the_time_between_them),
		cmocka_unit_test(time_before_the_first_transition_is_not_booked),
		cmocka_unit_test(a_clock_that_stops_or_goes_back_books_nothing),
		cmocka_unit_test(a_phase_that_is_entered_again_accumulates),
		cmocka_unit_test(detection_enters_the_phase_when_it_is_stable),
	};

	return cmocka_run_group_tests(task, NULL, NULL);
}
