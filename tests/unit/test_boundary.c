/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/boundary.h"

static const struct phase_config config = PHASE_CONFIG_DEFAULT;

struct event {
	enum boundary boundary;
	u64 now;
	enum phase after;
};

static void walk(struct task_state *task, const struct event *events, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		boundary_cross(&config, task, events[i].boundary, events[i].now);
		assert_int_equal(task->phase, events[i].after);
	}
}

#define WALK(task, ...)                                                                            \
	walk(task, (const struct event[]){ __VA_ARGS__ },                                          \
	     sizeof((const struct event[]){ __VA_ARGS__ }) / sizeof(struct event))

static void a_training_step_goes_through_all_phases(void **state)
{
	struct task_state task = {};

	WALK(&task, { BOUNDARY_DATA_WAIT, 1000, PHASE_DATA_LOADING },
	     { BOUNDARY_DATA_READY, 3000, PHASE_UNKNOWN },
	     { BOUNDARY_LAUNCH, 3100, PHASE_GPU_COMPUTE },
	     { BOUNDARY_LAUNCH, 4000, PHASE_GPU_COMPUTE },
	     { BOUNDARY_COLLECTIVE, 6000, PHASE_COLLECTIVE },
	     { BOUNDARY_SYNC_DONE, 9000, PHASE_OPTIMIZER },
	     { BOUNDARY_DATA_WAIT, 9500, PHASE_DATA_LOADING });
	assert_int_equal(task.phase_ns[PHASE_DATA_LOADING], 2000);
	assert_int_equal(task.phase_ns[PHASE_UNKNOWN], 100);
	assert_int_equal(task.phase_ns[PHASE_GPU_COMPUTE], 2900);
	assert_int_equal(task.phase_ns[PHASE_COLLECTIVE], 3000);
	assert_int_equal(task.phase_ns[PHASE_OPTIMIZER], 500);
	assert_int_equal(task.nr_transitions, 6);
}

static void a_launch_behind_a_collective_belongs_to_it(void **state)
{
	struct task_state task = { .phase = PHASE_COLLECTIVE, .phase_since_ns = 10 };

	assert_false(boundary_cross(&config, &task, BOUNDARY_LAUNCH, 20));
	assert_int_equal(task.phase, PHASE_COLLECTIVE);
}

static void a_sync_without_queued_work_changes_nothing(void **state)
{
	static const enum phase phases[] = { PHASE_UNKNOWN, PHASE_DATA_LOADING, PHASE_OPTIMIZER };

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		struct task_state task = { .phase = phases[i], .phase_since_ns = 10 };

		assert_false(boundary_cross(&config, &task, BOUNDARY_SYNC_DONE, 20));
		assert_int_equal(task.phase, phases[i]);
	}
}

static void a_sleep_with_queued_work_is_not_a_wait_for_data(void **state)
{
	struct task_state task = { .phase = PHASE_GPU_COMPUTE, .phase_since_ns = 10 };

	assert_false(boundary_cross(&config, &task, BOUNDARY_DATA_WAIT, 20));
	assert_int_equal(task.phase, PHASE_GPU_COMPUTE);
}

static void a_blocking_collective_ends_with_its_call(void **state)
{
	struct task_state task = {};

	WALK(&task, { BOUNDARY_COLLECTIVE, 1000, PHASE_COLLECTIVE },
	     { BOUNDARY_COLLECTIVE_DONE, 4000, PHASE_OPTIMIZER });
	assert_int_equal(task.phase_ns[PHASE_COLLECTIVE], 3000);
}

static void an_optimizer_step_becomes_unknown_at_the_bound(void **state)
{
	const u64 bound = config.optimizer_burst_max_ns;
	struct task_state task = { .phase = PHASE_OPTIMIZER, .phase_since_ns = 1000 };

	boundary_expire(&config, &task, 1000 + bound);
	assert_int_equal(task.phase, PHASE_OPTIMIZER);
	boundary_cross(&config, &task, BOUNDARY_LAUNCH, 1000 + bound + 70);
	assert_int_equal(task.phase, PHASE_GPU_COMPUTE);
	assert_int_equal(task.phase_ns[PHASE_OPTIMIZER], bound);
	assert_int_equal(task.phase_ns[PHASE_UNKNOWN], 70);
	assert_int_equal(task.nr_transitions, 2);
}

static void invalid_boundaries_and_phases_are_harmless(void **state)
{
	for (u32 boundary = 0; boundary < BOUNDARY_NR + 3; boundary++) {
		for (u32 phase = 0; phase < PHASE_NR + 3; phase++) {
			struct task_state task = { .phase = phase, .phase_since_ns = 1 };

			boundary_cross(&config, &task, boundary, 2);
			assert_true(task.phase < PHASE_NR || task.phase == phase);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_training_step_goes_through_all_phases),
		cmocka_unit_test(a_launch_behind_a_collective_belongs_to_it),
		cmocka_unit_test(a_sync_without_queued_work_changes_nothing),
		cmocka_unit_test(a_sleep_with_queued_work_is_not_a_wait_for_data),
		cmocka_unit_test(a_blocking_collective_ends_with_its_call),
		cmocka_unit_test(an_optimizer_step_becomes_unknown_at_the_bound),
		cmocka_unit_test(invalid_boundaries_and_phases_are_harmless),
	};

	return cmocka_run_group_tests_name("boundary", tests, NULL, NULL);
}
