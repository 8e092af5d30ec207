/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include "core/phase.h"

static void fill_with_random_bytes(struct random *r, void *at, size_t size)
{
	for (u8 *byte = at; size > 0; size--)
		*byte++ = (u8)random_u64(r);
}

static bool every_input_gives_one_of_five_phases_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct phase_signals s = random_signals(r, &c);
	struct phase_candidate cand = { random_any32(r), random_any32(r) };
	u32 phase;

	if (random_below(r, 4) == 0) {
		fill_with_random_bytes(r, &c, sizeof(c));
		fill_with_random_bytes(r, &s, sizeof(s));
	}
	phase = phase_raw(&c, &s);
	if (phase >= PHASE_NR)
		return false;
	return (u32)phase_detect(&c, &s, &cand, random_any32(r)) < PHASE_NR;
}
PROPERTY(every_input_gives_one_of_five_phases, 1)

static bool a_process_that_is_not_ml_is_unknown_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct phase_signals s = random_signals(r, &c);

	s.is_ml = 0;
	return phase_raw(&c, &s) == PHASE_UNKNOWN;
}
PROPERTY(a_process_that_is_not_ml_is_unknown, 1)

/* The reference rule as it is specified, with floating-point fractions. */
static enum phase reference_rule(const struct phase_config *c, const struct phase_signals *s)
{
	double threshold = c->io_wait_threshold / 1000.0;
	double io = s->io_wait_permille / 1000.0;
	double gpu = s->gpu_utilization;
	double idle = c->gpu_idle_threshold, active = c->gpu_active_threshold;

	if (!s->is_ml)
		return PHASE_UNKNOWN;
	if (c->nccl_detection_enabled && s->collective_mapped && s->nr_futex_waits > 0)
		return PHASE_COLLECTIVE;
	if (io > threshold && gpu < idle)
		return PHASE_DATA_LOADING;
	if (gpu > active && s->burst_ns == 0)
		return PHASE_GPU_COMPUTE;
	if (0 < s->burst_ns && s->burst_ns < c->optimizer_burst_max_ns && s->last_sync_ns != 0)
		return PHASE_OPTIMIZER;
	if (io > threshold * 0.5 && idle < gpu && gpu < active)
		return PHASE_DATA_LOADING;
	return PHASE_UNKNOWN;
}

static bool the_rule_agrees_with_the_reference_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct phase_signals s = random_signals(r, &c);

	return phase_raw(&c, &s) == reference_rule(&c, &s);
}
PROPERTY(the_rule_agrees_with_the_reference, 1)

/*
 * Another view of the rules: what each result implies about the input,
 * independent of the order of the checks.
 */
static bool each_phase_implies_its_evidence_holds(struct random *r)
{
	struct phase_config c = random_config(r);
	struct phase_signals s = random_signals(r, &c);
	bool collective = c.nccl_detection_enabled && s.collective_mapped && s.nr_futex_waits;
	bool busy = s.gpu_utilization > c.gpu_active_threshold;
	bool idle = s.gpu_utilization < c.gpu_idle_threshold;
	bool burst = s.burst_ns != 0;
	bool starved = s.io_wait_permille > c.io_wait_threshold;

	switch (phase_raw(&c, &s)) {
	case PHASE_COLLECTIVE: return s.is_ml && collective;
	case PHASE_GPU_COMPUTE:
		return s.is_ml && !collective && busy && !burst && !(starved && idle);
	case PHASE_OPTIMIZER:
		return s.is_ml && !collective && burst && s.last_sync_ns &&
		       s.burst_ns < c.optimizer_burst_max_ns && !(starved && idle);
	case PHASE_DATA_LOADING:
		return s.is_ml && !collective && s.io_wait_permille > c.io_wait_threshold / 2 &&
		       ((starved && idle) || !busy);
	default: return !s.is_ml || (!collective && !(starved && idle) && !(busy && !burst));
	}
}
PROPERTY(each_phase_implies_its_evidence, 1)

/*
 * A busy GPU with an idle CPU is GpuCompute unless a collective or starvation
 * takes precedence.
 */
static bool a_busy_gpu_without_a_burst_is_compute_holds(struct random *r)
{
	struct phase_config c = PHASE_CONFIG_DEFAULT;
	struct phase_signals s = random_signals(r, &c);

	s.is_ml = 1;
	s.burst_ns = 0;
	s.gpu_utilization = c.gpu_active_threshold + 1 + random_below(r, 20);
	if (phase_raw(&c, &s) != PHASE_GPU_COMPUTE)
		return false;
	s.gpu_utilization = random_below(r, c.gpu_active_threshold + 1);
	return phase_raw(&c, &s) != PHASE_GPU_COMPUTE;
}
PROPERTY(a_busy_gpu_without_a_burst_is_compute, 1)

#define STEPS 16

/* The raw phase takes effect exactly when the last `count` raw phases were all the same. */
static bool only_a_stable_phase_takes_effect_holds(struct random *r)
{
	struct phase_config c = { .phase_stability_count = random_below(r, 6) };
	struct phase_candidate cand = {};
	u32 kinds = 1 + random_below(r, PHASE_NR);
	u32 current = random_below(r, PHASE_NR);
	u32 raw[STEPS];

	for (u32 i = 0; i < STEPS; i++) {
		u32 same = 1, want;

		raw[i] = random_below(r, kinds);
		while (same <= i && raw[i - same] == raw[i])
			same++;
		want = same >= c.phase_stability_count ? raw[i] : current;
		if ((u32)phase_settle(&c, &cand, current, raw[i]) != want)
			return false;
		current = want;
	}
	return true;
}
PROPERTY(only_a_stable_phase_takes_effect, STEPS)

/* The properties above would prove little if the inputs missed a phase. */
static void random_inputs_reach_every_phase(void **state)
{
	u64 nr[PHASE_NR] = {};
	struct random r = random_start();

	for (u32 i = 0; i < 100000; i++) {
		struct phase_config c = random_config(&r);
		struct phase_signals s = random_signals(&r, &c);

		nr[phase_raw(&c, &s)]++;
	}
	for (u32 i = 0; i < PHASE_NR; i++) {
		print_message("# phase %u: %.1f %%\n", i, (double)nr[i] / 1000);
		assert_true(nr[i] > 2000);
	}
}

int main(void)
{
	const struct CMUnitTest phase_properties[] = {
		cmocka_unit_test(random_inputs_reach_every_phase),
		cmocka_unit_test(every_input_gives_one_of_five_phases),
		cmocka_unit_test(a_process_that_is_not_ml_is_unknown),
		cmocka_unit_test(the_rule_agrees_with_the_reference),
		cmocka_unit_test(each_phase_implies_its_evidence),
		cmocka_unit_test(a_busy_gpu_without_a_burst_is_compute),
		cmocka_unit_test(only_a_stable_phase_takes_effect),
	};

	return cmocka_run_group_tests(phase_properties, NULL, NULL);
}
