/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "core/task.h"
#include "unit/phase_vectors.h"

static void gives_the_expected_phases(void **state)
{
	const struct phase_vector *v = *state;
	struct phase_config config = phase_vector_config(v);
	struct task_state task = { .phase = v->current };

	for (u32 i = 0; i < v->nr_calls; i++) {
		task_detect(&config, &task, &v->signals, i + 1);
		assert_string_equal(phase_name(task.phase), phase_name(v->phase[i]));
	}
	assert_int_equal(task.nr_transitions, v->nr_transitions);
}

static void defaults_match_the_reference(void **state)
{
	struct phase_config config = PHASE_CONFIG_DEFAULT;

	assert_int_equal(config.io_wait_threshold, 300);
	assert_int_equal(config.optimizer_burst_max_ns, 5000000);
	assert_int_equal(config.gpu_idle_threshold, 10);
	assert_int_equal(config.gpu_active_threshold, 80);
	assert_int_equal(config.phase_stability_count, 3);
	assert_int_equal(config.nccl_detection_enabled, 0);
}

static void half_of_an_odd_threshold_is_not_rounded(void **state)
{
	struct phase_config config = PHASE_CONFIG_DEFAULT;
	struct phase_signals signals = { .is_ml = 1, .gpu_utilization = 50 };

	config.io_wait_threshold = 301;
	signals.io_wait_permille = 150;
	assert_int_equal(phase_raw(&config, &signals), PHASE_UNKNOWN);
	signals.io_wait_permille = 151;
	assert_int_equal(phase_raw(&config, &signals), PHASE_DATA_LOADING);
	signals.io_wait_permille = ~0U;
	assert_int_equal(phase_raw(&config, &signals), PHASE_DATA_LOADING);
}

static void another_raw_phase_restarts_the_count(void **state)
{
	const struct phase_config config = PHASE_CONFIG_DEFAULT;
	struct phase_candidate cand = {};
	static const enum phase raw[] = {
		PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE, PHASE_OPTIMIZER,
		PHASE_GPU_COMPUTE, PHASE_GPU_COMPUTE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(raw); i++)
		assert_int_equal(phase_settle(&config, &cand, PHASE_UNKNOWN, raw[i]),
				 PHASE_UNKNOWN);
	assert_int_equal(phase_settle(&config, &cand, PHASE_UNKNOWN, PHASE_GPU_COMPUTE),
			 PHASE_GPU_COMPUTE);
}

static void a_full_counter_stays_full(void **state)
{
	const struct phase_config config = PHASE_CONFIG_DEFAULT;
	struct phase_candidate cand = { .phase = PHASE_OPTIMIZER, .count = ~0U };

	assert_int_equal(phase_settle(&config, &cand, PHASE_UNKNOWN, PHASE_OPTIMIZER),
			 PHASE_OPTIMIZER);
	assert_int_equal(cand.count, ~0U);
}

static void forgetting_drops_the_candidate(void **state)
{
	const struct phase_config config = PHASE_CONFIG_DEFAULT;
	struct phase_candidate cand = {};

	phase_settle(&config, &cand, PHASE_UNKNOWN, PHASE_OPTIMIZER);
	phase_settle(&config, &cand, PHASE_UNKNOWN, PHASE_OPTIMIZER);
	phase_forget(&cand);
	assert_int_equal(phase_settle(&config, &cand, PHASE_UNKNOWN, PHASE_OPTIMIZER),
			 PHASE_UNKNOWN);
}

static void an_invalid_phase_is_unknown(void **state)
{
	const struct phase_config config = PHASE_CONFIG_DEFAULT;
	struct phase_candidate cand = {};

	assert_int_equal(phase_of(PHASE_NR), PHASE_UNKNOWN);
	assert_int_equal(phase_of(~0U), PHASE_UNKNOWN);
	assert_int_equal(phase_settle(&config, &cand, 77, PHASE_OPTIMIZER), PHASE_UNKNOWN);
	assert_string_equal(phase_name(PHASE_NR), "Unknown");
	assert_string_equal(phase_label(~0U), "unknown");
}

static void names_and_labels_match_the_reference(void **state)
{
	static const struct {
		enum phase phase;
		const char *name, *label;
	} rows[] = {
		{ PHASE_DATA_LOADING, "DataLoading", "data_loading" },
		{ PHASE_GPU_COMPUTE, "GpuCompute", "gpu_compute" },
		{ PHASE_COLLECTIVE, "NcclCollective", "nccl_collective" },
		{ PHASE_OPTIMIZER, "OptimizerStep", "optimizer_step" },
		{ PHASE_UNKNOWN, "Unknown", "unknown" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(phase_name(rows[i].phase), rows[i].name);
		assert_string_equal(phase_label(rows[i].phase), rows[i].label);
	}
}

static void fractions_are_shares_of_all_recorded_time(void **state)
{
	const u64 phase_ns[PHASE_NR] = { [PHASE_DATA_LOADING] = 200, [PHASE_GPU_COMPUTE] = 800 };

	assert_true(phase_fraction(phase_ns, PHASE_DATA_LOADING) == 0.2);
	assert_true(phase_fraction(phase_ns, PHASE_GPU_COMPUTE) == 0.8);
	assert_true(phase_fraction(phase_ns, PHASE_OPTIMIZER) == 0);
}

static void fractions_are_zero_when_nothing_was_recorded(void **state)
{
	const u64 phase_ns[PHASE_NR] = {};

	for (u32 i = 0; i < PHASE_NR; i++)
		assert_true(phase_fraction(phase_ns, i) == 0);
}

static void fractions_do_not_overflow(void **state)
{
	u64 phase_ns[PHASE_NR];

	for (u32 i = 0; i < PHASE_NR; i++)
		phase_ns[i] = ~0ULL;
	assert_true(phase_fraction(phase_ns, PHASE_OPTIMIZER) == 0.2);
	for (u32 i = 1; i < PHASE_NR; i++)
		phase_ns[i] = 0;
	assert_true(phase_fraction(phase_ns, PHASE_UNKNOWN) == 1);
}

int main(void)
{
	const struct CMUnitTest fixed[] = {
		cmocka_unit_test(defaults_match_the_reference),
		cmocka_unit_test(half_of_an_odd_threshold_is_not_rounded),
		cmocka_unit_test(another_raw_phase_restarts_the_count),
		cmocka_unit_test(a_full_counter_stays_full),
		cmocka_unit_test(forgetting_drops_the_candidate),
		cmocka_unit_test(an_invalid_phase_is_unknown),
		cmocka_unit_test(names_and_labels_match_the_reference),
		cmocka_unit_test(fractions_are_shares_of_all_recorded_time),
		cmocka_unit_test(fractions_are_zero_when_nothing_was_recorded),
		cmocka_unit_test(fractions_do_not_overflow),
	};
	enum { NR_FIXED = ARRAY_SIZE(fixed) };
	struct CMUnitTest phase[NR_PHASE_VECTORS + NR_FIXED] = {};

	for (size_t i = 0; i < NR_PHASE_VECTORS; i++)
		phase[i] = (struct CMUnitTest){
			.name = phase_vectors[i].name,
			.test_func = gives_the_expected_phases,
			.initial_state = (void *)&phase_vectors[i],
		};
	for (size_t i = 0; i < NR_FIXED; i++)
		phase[NR_PHASE_VECTORS + i] = fixed[i];
	return cmocka_run_group_tests(phase, NULL, NULL);
}
