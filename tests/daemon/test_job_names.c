/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests when zerneld asks for the names of jobs, and for which job a result counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/job_names.h"

static u32 nr_wanted;
static pid_t wanted;

void discovery_want_names(struct discovery *discovery, pid_t pid)
{
	nr_wanted++;
	wanted = pid;
}

static struct snapshot *make(const char *cgroup, u32 kind)
{
	struct snapshot_limits limits = { 4, 4, 4, 4, 4 };
	struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	for (u32 pid = 7; pid < 9; pid++)
		snapshot_add_process(s, pid)->job = snapshot_add_job(s, cgroup, "job");
	s->jobs[0].kind = kind;
	nr_wanted = 0;
	return s;
}

static void test_a_job_is_asked_for_at_growing_intervals(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make("/job", JOB_POD);
	u64 now_ns = NSEC_PER_SEC;

	job_names_want(s, now_ns, NULL);
	assert_int_equal(nr_wanted, 1);
	assert_int_equal(wanted, 7);
	job_names_want(s, now_ns + 9 * NSEC_PER_SEC, NULL);
	assert_int_equal(nr_wanted, 1);
	job_names_want(s, now_ns + 10 * NSEC_PER_SEC, NULL);
	assert_int_equal(nr_wanted, 2);
	job_names_want(s, now_ns + 29 * NSEC_PER_SEC, NULL);
	assert_int_equal(nr_wanted, 2);
	/* And then no more. */
	for (u32 i = 0; i < 100000; i++)
		job_names_want(s, now_ns += NSEC_PER_SEC, NULL);
	assert_int_equal(nr_wanted, 9);
}

static void test_other_jobs_are_not_asked_for(void **state)
{
	static const u32 kinds[] = { JOB_CGROUP, JOB_SESSION, JOB_UNIT, JOB_CONTAINER };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = make("/job", kinds[i]);

		job_names_want(s, NSEC_PER_SEC, NULL);
		assert_int_equal(nr_wanted, 0);
	}
}

static void test_a_result_is_for_the_job_of_its_cgroup(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make("/job", JOB_SLURM);
	struct job_scan result = { .cgroup = "/other", .names.claimed_name = "train" };

	job_names_take(s, &result);
	assert_string_equal(s->jobs[0].names.claimed_name, "");
	strcpy(result.cgroup, "/job");
	job_names_take(s, &result);
	assert_string_equal(s->jobs[0].names.claimed_name, "train");
	job_names_want(s, NSEC_PER_SEC, NULL);
	assert_int_equal(nr_wanted, 0);
	/* The first claim stays. */
	strcpy(result.names.claimed_name, "late");
	job_names_take(s, &result);
	assert_string_equal(s->jobs[0].names.claimed_name, "train");
}

/* A cgroup can have any bytes; a snapshot has valid text. */
static void test_cgroups_are_compared_as_text(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = make("/job\xff", JOB_SLURM);
	struct job_scan result = { .cgroup = "/job\xff", .names.claimed_name = "train" };

	job_names_take(s, &result);
	assert_string_equal(s->jobs[0].names.claimed_name, "train");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_job_is_asked_for_at_growing_intervals),
		cmocka_unit_test(test_other_jobs_are_not_asked_for),
		cmocka_unit_test(test_a_result_is_for_the_job_of_its_cgroup),
		cmocka_unit_test(test_cgroups_are_compared_as_text),
	};

	return cmocka_run_group_tests_name("names of jobs", tests, NULL, NULL);
}
