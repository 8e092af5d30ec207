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

/* A job that calls as it is told, and what was found of its steps. */
struct job {
	struct step_state state;
	u64 now;
	u64 launches;
	u64 copies;
	u64 nr_found;
	u64 nr_timed;
	u64 length_ns; /* of all timed ones together */
	u64 longest_ns;
	u64 last_ns;
};

/* As the kernel side does it: a cycle, then the judgement of up to two. */
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
 * A letter is a cycle: A to F launch 100, 30, 300, 10, 3 or 1000 kernels; a small one has a
 * collective as well. A + is a copy to the device, a - a sync without any launch.
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

static void test_one_sync_a_step(void **state)
{
	struct job job = {};

	repeat(&job, "A", 100);
	assert_int_equal(job.nr_found, 100);
	assert_int_equal(job.nr_timed, 99);
	assert_int_equal(job.length_ns, 99 * MS);
}

static void test_several_syncs_a_step(void **state)
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

/* Two micro-batches that differ in nothing cannot be told from two steps. */
static void test_cycles_without_a_difference_are_steps(void **state)
{
	struct job job = {};

	repeat(&job, "AA", 50);
	assert_int_equal(job.nr_found, 100);
}

static void test_launches_may_vary_a_little(void **state)
{
	struct job job = {};

	for (u32 i = 0; i < 200; i++) {
		job.now += MS;
		job.launches += 95 + i * 7 % 17;
		sync(&job);
	}
	assert_int_equal(job.nr_found, 200);
}

/* Copies that come now and then, and syncs that wait for nothing. */
static void test_what_is_no_cycle_does_not_matter(void **state)
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

/* Nor is it any step's time. */
static void test_evaluation_is_no_step(void **state)
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

static void test_warming_up_is_soon_forgotten(void **state)
{
	struct job job = {};

	repeat(&job, "D", 12);
	assert_int_equal(job.nr_found, 10); /* two at a time, since the eighth */
	repeat(&job, "AB", 200);
	assert_in_range(job.nr_found, 12 + 200 - 12, 12 + 200);
	assert_int_equal(job.longest_ns, 2 * MS);
}

/* Another model, or an evaluation that goes on: it has steps of its own. */
static void test_another_job_is_found(void **state)
{
	struct job job = {};

	repeat(&job, "F", 1000);
	repeat(&job, "AB", 1000);
	/* But for those while the old ones were not yet forgotten, less what it was found in. */
	assert_in_range(job.nr_found, 2000 - (STEP_DOUBT_MAX - STEP_SURE) / 2 - 1, 2000);
}

static void test_no_sequence_no_step(void **state)
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

static void test_looks(void **state)
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
		cmocka_unit_test(test_one_sync_a_step),
		cmocka_unit_test(test_several_syncs_a_step),
		cmocka_unit_test(test_cycles_without_a_difference_are_steps),
		cmocka_unit_test(test_launches_may_vary_a_little),
		cmocka_unit_test(test_what_is_no_cycle_does_not_matter),
		cmocka_unit_test(test_logging_is_part_of_its_step),
		cmocka_unit_test(test_evaluation_is_no_step),
		cmocka_unit_test(test_warming_up_is_soon_forgotten),
		cmocka_unit_test(test_another_job_is_found),
		cmocka_unit_test(test_no_sequence_no_step),
		cmocka_unit_test(test_looks),
	};

	return cmocka_run_group_tests(step_tests, NULL, NULL);
}
