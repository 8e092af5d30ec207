/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of a launcher whose syncs spin, with the estimate and the policy that the
 * scheduler uses. Other tasks fill the CPU: a launcher that gave it up is back only when
 * the scheduler expects the end of the work on the GPU. The launcher starts the next
 * work when it sees the end of the last one, so the GPU is idle while the launcher is late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/busy.h"
#include "core/policy.h"

#define TICK_NS	 (4 * NSEC_PER_MSEC)
#define LATE_NS	 (500 * NSEC_PER_USEC) /* as in bpf/signals/state.bpf.h */
#define NR_SPANS 1000

struct model {
	struct busy_estimate busy;
	u64 now;
	u64 worked_ns; /* by the GPU */
	u64 idle_ns;   /* the GPU was done, and the launcher did not see it */
};

static u64 next_tick(u64 now)
{
	return (now / TICK_NS + 1) * TICK_NS;
}

static u64 expected_end(const struct model *model)
{
	return busy_expected_end(&model->busy, 1);
}

static bool gives_up_cpu(const struct model *model)
{
	const struct class_view view = {
		.now = model->now,
		.role = ROLE_LAUNCHER,
		.in_sync = true,
		.device_busy = true,
		.expected_end_ns = expected_end(model),
	};

	return class_of(&view, 0) == CLASS_SPINNER;
}

/* Runs work of `span` on the GPU and one spinning sync. Returns how long the launcher waited. */
static u64 wait_for_gpu(struct model *model, u64 span)
{
	u64 begin = model->now, done = begin + span, running_since = begin;
	u64 turn_ends = next_tick(begin);

	busy_begin(&model->busy, 0, begin);
	while (turn_ends < done) {
		model->now = turn_ends;
		if (gives_up_cpu(model)) {
			model->now = spin_due(expected_end(model), model->now);
			running_since = model->now;
		}
		if (model->now >= done)
			break;
		turn_ends = gives_up_cpu(model) ? model->now + SPIN_TURN_NS : next_tick(model->now);
	}
	if (model->now < done)
		model->now = done;
	busy_end(&model->busy, 1, model->now < running_since + LATE_NS, model->now);
	model->worked_ns += span;
	model->idle_ns += model->now - done;
	return model->now - begin;
}

/* The CPU work between two spans lasts up to a tick, so that a tick can fall on any part of a span.
 */
static void compute(struct model *model, u64 i)
{
	model->now += 300 * NSEC_PER_USEC + i * 2654435761ULL % TICK_NS;
}

static void assert_gpu_is_busy(const struct model *model)
{
	print_message("# the GPU was idle for %.1f %% of its work\n",
		      100.0 * (double)model->idle_ns / (double)model->worked_ns);
	assert_in_range(model->idle_ns * 100 / model->worked_ns, 0, 9);
}

static void test_equal_spans(void **state)
{
	struct model model = { .now = NSEC_PER_SEC };

	for (u64 i = 0; i < NR_SPANS; i++) {
		wait_for_gpu(&model, 20 * NSEC_PER_MSEC);
		compute(&model, i);
	}
	assert_gpu_is_busy(&model);
}

static void test_alternating_spans(void **state)
{
	struct model model = { .now = NSEC_PER_SEC };

	for (u64 i = 0; i < NR_SPANS; i++) {
		wait_for_gpu(&model, (i % 2 ? 2 : 30) * NSEC_PER_MSEC);
		compute(&model, i);
	}
	assert_gpu_is_busy(&model);
}

/* A request: a first token of 40 ms, then 15 tokens of 4 ms. */
static void test_prefill_and_tokens(void **state)
{
	struct model model = { .now = NSEC_PER_SEC };
	u64 waited = 0, nr_tokens = 0;

	for (u64 i = 0; i < NR_SPANS; i++) {
		bool is_first = i % 16 == 0;
		u64 took = wait_for_gpu(&model, (is_first ? 40 : 4) * NSEC_PER_MSEC);

		if (!is_first) {
			waited += took;
			nr_tokens++;
		}
		compute(&model, i);
	}
	print_message("# a token of 4 ms takes %.1f ms\n",
		      (double)waited / (double)nr_tokens / NSEC_PER_MSEC);
	assert_in_range(waited / nr_tokens, 4 * NSEC_PER_MSEC, 4800 * NSEC_PER_USEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_spans),
		cmocka_unit_test(test_alternating_spans),
		cmocka_unit_test(test_prefill_and_tokens),
	};

	return cmocka_run_group_tests_name("busy-model", tests, NULL, NULL);
}
