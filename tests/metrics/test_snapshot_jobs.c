/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests what a job is told about its processes, from snapshot to snapshot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/snapshot.h"

static struct snapshot *make(void)
{
	struct snapshot_limits limits = { 8, 8, 8, 8, 8 };
	struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	return s;
}

static struct snapshot_job *add(struct snapshot *s, u32 pid, const char *cgroup, u32 uid)
{
	struct snapshot_process *process = snapshot_add_process(s, pid);

	process->job = snapshot_add_job(s, cgroup, cgroup);
	process->uid = uid;
	process->started_ms = 1000 + pid;
	process->nr_memory = 2;
	process->memory[0].book.peak_bytes = pid;
	process->memory[1].book.peak_bytes = 100;
	snapshot_join_job(s, process);
	return snapshot_job(s, process);
}

static void test_a_job_has_the_user_of_all_its_processes(void **state)
{
	CLEANUP(snapshot_free_cleanup)
	struct snapshot *one = make(), *two = make(), *three = make();
	struct snapshot_job *job;

	add(one, 1, "/a", 1000);
	job = add(one, 2, "/a", 1000);
	assert_int_equal(job->uid, 1000);
	assert_int_equal(add(one, 3, "/b", 1000)->uid, 1000);
	assert_int_equal(add(one, 4, "/b", 1001)->uid, SNAPSHOT_UID_UNKNOWN);
	assert_int_equal(add(one, 5, "/b", 1001)->uid, SNAPSHOT_UID_UNKNOWN);
	/* A job that had a second user stays a job of several users. */
	add(two, 1, "/a", 1000);
	add(two, 3, "/b", 1000);
	snapshot_carry(two, one);
	assert_int_equal(two->jobs[0].uid, 1000);
	assert_int_equal(two->jobs[1].uid, SNAPSHOT_UID_UNKNOWN);
	add(three, 9, "/a", 1001);
	snapshot_carry(three, two);
	assert_int_equal(three->jobs[0].uid, SNAPSHOT_UID_UNKNOWN);
}

static void test_start_and_peak_of_ended_processes_stay(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *one = make(), *two = make();
	struct snapshot_job *job;

	add(one, 7, "/a", 1000);
	job = add(one, 50, "/a", 1000);
	assert_int_equal(job->started_ms, 1007);
	assert_int_equal(job->peak_bytes, 150);
	job = add(two, 20, "/a", 1000);
	snapshot_carry(two, one);
	assert_int_equal(job->started_ms, 1007);
	assert_int_equal(job->peak_bytes, 150);
}

/* Two jobs can claim one name, and a job can be named late. */
static void test_names_neither_merge_nor_split_jobs(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *one = make(), *two = make();

	strcpy(add(one, 1, "/slurm/job_1", 1000)->names.claimed_name, "train");
	strcpy(add(one, 2, "/slurm/job_2", 1001)->names.claimed_name, "train");
	assert_int_equal(one->nr_jobs, 2);
	add(two, 3, "/slurm/job_1", 1000);
	add(two, 4, "/slurm/job_1", 1000);
	add(two, 5, "/slurm/job_3", 1000);
	snapshot_carry(two, one);
	assert_int_equal(two->nr_jobs, 2);
	assert_string_equal(two->jobs[0].names.claimed_name, "train");
	assert_string_equal(two->jobs[1].names.claimed_name, "");
}

/* A job that continues another one only by its name is another job to the node. */
static void test_names_stay_with_the_cgroup(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *one = make(), *two = make();
	struct snapshot_process *process = snapshot_add_process(two, 2);

	strcpy(add(one, 1, "/a", 1000)->names.pod, "trainer-0");
	process->job = snapshot_add_job(two, "/b", "/a");
	snapshot_carry(two, one);
	assert_string_equal(two->jobs[0].names.pod, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_job_has_the_user_of_all_its_processes),
		cmocka_unit_test(test_start_and_peak_of_ended_processes_stay),
		cmocka_unit_test(test_names_neither_merge_nor_split_jobs),
		cmocka_unit_test(test_names_stay_with_the_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
