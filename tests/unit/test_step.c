/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "core/step.h"

#define MS NSEC_PER_MSEC

/* A simulated job, and the steps that were found. */
struct job {
	struct step_state state;
	u64 now;
	u64 launches;
	u64 copies;
	bool has_result;
	u64 nr_found;
	u64 nr_timed;
	u64 length_ns; /* sum of all timed steps */
	u64 longest_ns;
	u64 last_ns;
};

static void count(struct job *job, struct step_end end)
{
	job->nr_found++;
	assert_true(end.at_ns > job->last_ns);
	job->last_ns = end.at_ns;
	job->nr_timed += end.length_ns > 0;
	job->length_ns += end.length_ns;
	if (end.length_ns > job->longest_ns)
		job->longest_ns = end.length_ns;
	assert_int_equal(job->state.nr_steps, job->nr_found);
}

/* Does the same as the BPF programs: ends a cycle, then judges up to two cycles. */
static void sync(struct job *job)
{
	bool has_result = job->has_result;
	struct step_end end;

	job->has_result = false;
	if (!step_sync(&job->state, job->launches, job->copies, has_result, job->now))
		return;
	for (u32 i = 0; i < STEP_JUDGE_MAX; i++)
		if (step_judge(&job->state, &end))
			count(job, end);
}

static void optimize(struct job *job)
{
	step_named(&job->state);
	count(job, step_optimized(&job->state, job->now));
}

/*
 * A letter is a cycle: A to F launch 100, 30, 300, 10, 3 or 1000 kernels. A lowercase letter also
 * has a collective. "+" is a copy to the GPU, "-" is a sync without a launch. ">" is a copy to the
 * host, "0" clears the gradients, "!" is an optimizer step.
 */
static void run(struct job *job, const char *cycles)
{
	static const u32 launches[] = { 100, 30, 300, 10, 3, 1000 };

	for (; *cycles; cycles++) {
		job->now += MS;
		if (*cycles == '+') {
			job->copies++;
			continue;
		}
		if (*cycles == '>') {
			job->has_result = true;
			continue;
		}
		if (*cycles == '0') {
			step_cleared(&job->state);
			continue;
		}
		if (*cycles == '!') {
			optimize(job);
			continue;
		}
		if (*cycles >= 'a') {
			job->state.had_collective = 1;
			job->launches += launches[*cycles - 'a'];
		} else if (*cycles != '-') {
			job->launches += launches[*cycles - 'A'];
		}
		sync(job);
	}
}

static void repeat(struct job *job, const char *cycles, u32 times)
{
	while (times--)
		run(job, cycles);
}

static void test_one_sync_per_step(void **state)
{
	struct job job = {};

	repeat(&job, "A", 100);
	assert_int_equal(job.nr_found, 100);
	assert_int_equal(job.nr_timed, 99);
	assert_int_equal(job.length_ns, 99 * MS);
}

static void test_several_syncs_per_step(void **state)
{
	static const char *const steps[] = { "AB",   "ABC",   "+AA",   "AAb",	"ABAC",
					     "AAAb", "ABCDE", "AAAAb", "ABABC", "+AAAAA" };

	for (u32 i = 0; i < ARRAY_SIZE(steps); i++) {
		u64 length = strlen(steps[i]);
		struct job job = {};

		repeat(&job, steps[i], 100);
		if (job.nr_found != 100 || job.length_ns != 99 * length * MS)
			fail_msg("%s: %llu steps of %llu us", steps[i], job.nr_found,
				 job.length_ns / (job.nr_timed + 1) / 1000);
	}
}

/* Two equal micro-batches cannot be distinguished from two steps. */
static void test_equal_cycles_are_steps(void **state)
{
	struct job job = {};

	repeat(&job, "AA", 50);
	assert_int_equal(job.nr_found, 100);
}

static void test_launches_may_vary_slightly(void **state)
{
	struct job job = {};

	for (u32 i = 0; i < 200; i++) {
		job.now += MS;
		job.launches += 95 + i * 7 % 17;
		sync(&job);
	}
	assert_int_equal(job.nr_found, 200);
}

/* Irregular copies, and syncs without queued work. */
static void test_extra_copies_and_syncs_are_ignored(void **state)
{
	struct job job = {};

	for (u32 i = 0; i < 200; i++) {
		run(&job, i >= 20 && i % 9 == 0 ? "+A" : "A");
		if (i % 5 == 0)
			run(&job, "--");
	}
	assert_int_equal(job.nr_found, 200);
}

static void test_logging_is_part_of_its_step(void **state)
{
	struct job job = {};

	for (u32 i = 0; i < 40; i++) {
		repeat(&job, "aB", 10);
		run(&job, "E");
	}
	assert_int_equal(job.nr_found, 400);
	assert_int_equal(job.nr_timed, 399);
	assert_int_equal(job.longest_ns, 3 * MS);
}

/* Its time is not part of a step either. */
static void test_evaluation_is_not_a_step(void **state)
{
	struct job job = {};

	for (u32 i = 0; i < 5; i++) {
		repeat(&job, "aC", 100);
		repeat(&job, "B", 50);
	}
	assert_int_equal(job.nr_found, 500);
	assert_int_equal(job.longest_ns, 2 * MS);
	assert_int_equal(job.nr_timed, 500 - 5);
}

static void test_warm_up_is_dropped_soon(void **state)
{
	struct job job = {};

	repeat(&job, "D", 12);
	assert_int_equal(job.nr_found, 10); /* two per cycle, from the eighth cycle */
	repeat(&job, "AB", 200);
	assert_in_range(job.nr_found, 12 + 200 - 12, 12 + 200);
	assert_int_equal(job.longest_ns, 2 * MS);
}

/* Another model, or a long evaluation, has its own steps. */
static void test_a_new_sequence_is_found(void **state)
{
	struct job job = {};

	repeat(&job, "F", 1000);
	repeat(&job, "AB", 1000);
	/* Steps are missing from the time before the old sequence was dropped. */
	assert_in_range(job.nr_found, 2000 - (STEP_DOUBT_MAX - STEP_SURE) / 2 - 1, 2000);
}

/* Cycles with different launches. One in `results` brings a result to the host; 0: none. */
static void run_random(struct job *job, u32 results, u32 times)
{
	u32 seed = 1;

	for (u32 i = 0; i < times; i++) {
		char cycle[2] = "A";

		seed = seed * 1103515245 + 12345;
		cycle[0] = (char)('A' + (seed >> 16) % 6);
		if (results && i % results == 0)
			run(job, ">");
		run(job, cycle);
	}
}

static void test_random_cycles_have_no_steps(void **state)
{
	struct job job = {};

	run_random(&job, 0, 300);
	assert_int_equal(job.nr_found, 0);
	assert_int_equal(job.state.basis, STEP_BASIS_NONE);
}

static void test_named_steps_are_the_steps(void **state)
{
	static const char *const steps[] = { "!", "A!", "!A", "AAAAAAAA!", "0A>A>A>A!>A", "AB!--" };

	for (u32 i = 0; i < ARRAY_SIZE(steps); i++) {
		struct job job = {};

		run(&job, "!");
		repeat(&job, steps[i], 100);
		assert_int_equal(job.nr_found, 101);
		assert_int_equal(job.nr_timed, 100);
		/* From the first end to the last one. */
		assert_int_equal(job.length_ns, job.last_ns - MS);
		assert_int_equal(job.state.basis, STEP_BASIS_OPTIMIZER);
	}
}

/* Training may begin after an evaluation. Its first step is counted, but its length is unknown. */
static void test_names_replace_syncs(void **state)
{
	struct job job = {};

	repeat(&job, "A", 20);
	assert_int_equal(job.state.basis, STEP_BASIS_SYNC);
	assert_int_equal(job.nr_found, 20);
	repeat(&job, "AAA!", 10);
	assert_int_equal(job.state.basis, STEP_BASIS_OPTIMIZER);
	assert_int_equal(job.nr_found, 23 + 10);
	assert_int_equal(job.nr_timed, 22 + 9);
	/* Once steps have names, nothing else is a step. */
	repeat(&job, ">A", 100);
	assert_int_equal(job.nr_found, 33);
}

/* The twelve syncs of the first step would be steps otherwise. */
static void test_cleared_gradients_announce_names(void **state)
{
	struct job job = {};

	repeat(&job, "0>A>A>A>A>A>A>A>A>A>A>A>A!", 10);
	assert_int_equal(job.nr_found, 10);
}

static void test_steps_without_names_are_found_though_gradients_are_cleared(void **state)
{
	struct job job = {};

	repeat(&job, "0A", 100);
	assert_int_equal(job.state.basis, STEP_BASIS_SYNC);
	/* The first step was expected to get a name, and the second one has the launches of both.
	 */
	assert_int_equal(job.nr_found, 98);
}

static void test_results_on_the_host_are_iterations(void **state)
{
	struct job job = {};

	run(&job, ">F"); /* the first one is different, as it is in most jobs */
	repeat(&job, ">A", 99);
	assert_int_equal(job.state.basis, STEP_BASIS_ITERATION);
	assert_int_equal(job.nr_found, 100);
	assert_int_equal(job.length_ns, 99 * 2 * MS);
	repeat(&job, "B>A", 100);
	assert_int_equal(job.nr_found, 200);
	repeat(&job, ">A>-", 100); /* the launches of both came before the first sync */
	assert_int_equal(job.nr_found, 400);
}

/* A server works on batches of any size. */
static void test_iterations_need_not_repeat(void **state)
{
	struct job job = {};

	run_random(&job, 0, 40);
	run_random(&job, 1, 300);
	assert_int_equal(job.state.basis, STEP_BASIS_ITERATION);
	assert_int_equal(job.nr_found, 300);
	assert_int_equal(job.nr_timed, 299);
	job = (struct job){};
	run_random(&job, 2, 300);
	assert_int_equal(job.nr_found, 150);
}

static void test_rare_results_are_no_iterations(void **state)
{
	struct job job = {};

	for (u32 i = 0; i < 40; i++) {
		repeat(&job, "A", 9);
		run(&job, ">A");
	}
	assert_int_equal(job.state.basis, STEP_BASIS_SYNC);
	assert_int_equal(job.nr_found, 400);
	job = (struct job){};
	run_random(&job, 3, 300);
	assert_int_equal(job.nr_found, 0);
}

/* A step that reads its loss and the norm of its gradients is not two iterations. */
static void test_several_results_in_a_sequence_are_one_step(void **state)
{
	struct job job = {};

	repeat(&job, ">A>E", 100);
	assert_int_equal(job.state.basis, STEP_BASIS_SYNC);
	assert_int_equal(job.nr_found, 100);
}

static void test_iterations_end_when_results_end(void **state)
{
	struct job job = {};

	repeat(&job, ">A", 100);
	repeat(&job, "AB", 1000);
	assert_int_equal(job.state.basis, STEP_BASIS_SYNC);
	assert_in_range(job.nr_found, 1100 - (STEP_DOUBT_MAX - STEP_SURE) / 2 - 1, 1100);
}

static void complete(struct ledger *ledger, u32 slot, u64 position)
{
	ledger_complete(ledger, &(struct ledger_mark){ .position = position, .stream = slot });
}

/* Two iterations are queued before the results of the first one are waited for. */
static void test_a_result_is_covered_once(void **state)
{
	struct step_state s = {};
	struct ledger ledger = {};
	u64 first, second;

	ledger_queue(&ledger, 3);
	first = ledger_queue(&ledger, 3);
	step_result(&s, 3, first);
	ledger_queue(&ledger, 3);
	second = ledger_queue(&ledger, 3);
	step_result(&s, 3, second);
	assert_false(step_covers(&s, &ledger));
	complete(&ledger, 3, first - 1);
	assert_false(step_covers(&s, &ledger));
	complete(&ledger, 3, first);
	assert_true(step_covers(&s, &ledger));
	assert_false(step_covers(&s, &ledger));
	complete(&ledger, 3, second);
	assert_true(step_covers(&s, &ledger));
	assert_false(step_covers(&s, &ledger));
}

/* Many tensors per iteration, and one iteration ahead. */
static void test_copies_in_a_row_are_one_result(void **state)
{
	struct step_state s = {};
	struct ledger ledger = {};
	u64 ends[2];

	for (u32 i = 0; i < 2; i++) {
		ledger_queue(&ledger, 1);
		for (u32 k = 0; k < 10; k++) {
			ends[i] = ledger_queue(&ledger, 1);
			step_result(&s, 1, ends[i]);
		}
	}
	complete(&ledger, 1, ends[0]);
	assert_true(step_covers(&s, &ledger));
	complete(&ledger, 1, ends[1]);
	assert_true(step_covers(&s, &ledger));
	assert_false(step_covers(&s, &ledger));
}

static void test_a_captured_copy_is_no_result(void **state)
{
	struct step_state s = {};
	struct ledger ledger = {};

	ledger_capture(&ledger, 1);
	step_result(&s, 1, ledger_queue(&ledger, 1));
	assert_false(step_covers(&s, &ledger));
}

static void test_signatures(void **state)
{
	assert_int_equal(step_look(1, false, false), 0);
	assert_int_equal(step_look(2, false, false), 4);
	assert_int_equal(step_look(3, true, false), 6 | LOOK_COPY);
	assert_int_equal(step_look(7, false, true), 11 | LOOK_COLLECTIVE);
	assert_int_equal(step_look(~0ULL, true, true), 0xff);
}

int main(void)
{
	const struct CMUnitTest step_tests[] = {
		cmocka_unit_test(test_one_sync_per_step),
		cmocka_unit_test(test_several_syncs_per_step),
		cmocka_unit_test(test_equal_cycles_are_steps),
		cmocka_unit_test(test_launches_may_vary_slightly),
		cmocka_unit_test(test_extra_copies_and_syncs_are_ignored),
		cmocka_unit_test(test_logging_is_part_of_its_step),
		cmocka_unit_test(test_evaluation_is_not_a_step),
		cmocka_unit_test(test_warm_up_is_dropped_soon),
		cmocka_unit_test(test_a_new_sequence_is_found),
		cmocka_unit_test(test_random_cycles_have_no_steps),
		cmocka_unit_test(test_named_steps_are_the_steps),
		cmocka_unit_test(test_names_replace_syncs),
		cmocka_unit_test(test_cleared_gradients_announce_names),
		cmocka_unit_test(test_steps_without_names_are_found_though_gradients_are_cleared),
		cmocka_unit_test(test_results_on_the_host_are_iterations),
		cmocka_unit_test(test_iterations_need_not_repeat),
		cmocka_unit_test(test_rare_results_are_no_iterations),
		cmocka_unit_test(test_several_results_in_a_sequence_are_one_step),
		cmocka_unit_test(test_iterations_end_when_results_end),
		cmocka_unit_test(test_a_result_is_covered_once),
		cmocka_unit_test(test_copies_in_a_row_are_one_result),
		cmocka_unit_test(test_a_captured_copy_is_no_result),
		cmocka_unit_test(test_signatures),
	};

	return cmocka_run_group_tests(step_tests, NULL, NULL);
}
