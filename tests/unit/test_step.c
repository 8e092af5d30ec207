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
	u64 nr_found;
	u64 nr_timed;
	u64 length_ns; /* sum of all timed steps */
	u64 longest_ns;
	u64 last_ns;
};

/* Does the same as the BPF programs: ends a cycle, then judges up to two cycles. */
static void sync(struct job *job)
{
	struct step_end end;

	if (!step_sync(&job->state, job->launches, job->copies, job->now))
		return;
	for (u32 i = 0; i < STEP_JUDGE_MAX; i++) {
		if (!step_judge(&job->state, &end))
			continue;
		job->nr_found++;
		assert_true(end.at_ns > job->last_ns);
		job->last_ns = end.at_ns;
		job->nr_timed += end.length_ns > 0;
		job->length_ns += end.length_ns;
		if (end.length_ns > job->longest_ns)
			job->longest_ns = end.length_ns;
	}
}

/*
 * A letter is a cycle: A to F launch 100, 30, 300, 10, 3 or 1000 kernels. A lowercase letter also
 * has a collective. "+" is a copy to the GPU, "-" is a sync without a launch.
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

static void test_random_cycles_have_no_steps(void **state)
{
	u32 seed = 1;
	struct job job = {};

	for (u32 i = 0; i < 300; i++) {
		char cycle[2] = "A";

		seed = seed * 1103515245 + 12345;
		cycle[0] = (char)('A' + (seed >> 16) % 6);
		run(&job, cycle);
	}
	assert_int_equal(job.nr_found, 0);
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
		cmocka_unit_test(test_signatures),
	};

	return cmocka_run_group_tests(step_tests, NULL, NULL);
}
