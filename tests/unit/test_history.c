/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests which ended jobs are remembered, and what is remembered of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/history.h"

#define ALL SNAPSHOT_UID_UNKNOWN

static struct history *history;
static struct snapshot *before, *now;

static int setup(void **state)
{
	struct snapshot_limits limits = { 64, 128, 128, 8, 256 };

	return history_new(&history) || snapshot_new(&limits, &before) ||
	       snapshot_new(&limits, &now);
}

static int teardown(void **state)
{
	history_free(history);
	snapshot_free(before);
	snapshot_free(now);
	return 0;
}

static struct snapshot_process *add(u32 pid, const char *cgroup, u32 uid, u32 kind)
{
	struct snapshot_process *process = snapshot_add_process(now, pid);

	process->job = snapshot_add_job(now, cgroup, cgroup + 1);
	now->jobs[process->job - 1].kind = kind;
	process->uid = uid;
	process->start_ns = pid;
	process->launcher_tid = pid;
	process->started_ms = 1000 + pid;
	process->nr_steps = 10;
	process->busy_ns = 700;
	process->idle_ns[IDLE_DISK] = 300;
	hist_record(snapshot_add_hist(now, &process->hists, HIST_STEP), 100);
	snapshot_join_job(now, process);
	return process;
}

/* The snapshot is complete; the next one is empty. */
static void next(void)
{
	struct snapshot *spare = before;

	now->time_ms = 5000;
	snapshot_carry(now, before);
	history_fold(history, before, now);
	before = now;
	now = spare;
	snapshot_clear(now);
}

static struct snapshot *show(u32 uid, const char *who)
{
	struct snapshot *s = NULL;

	assert_int_equal(history_show(history, before, uid, who, &s), 0);
	return s;
}

static void test_a_job_ends_with_its_last_process(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *none = NULL, *s = NULL;

	add(1, "/a", 1000, JOB_UNIT);
	add(2, "/a", 1000, JOB_UNIT);
	next();
	add(2, "/a", 1000, JOB_UNIT);
	next();
	none = show(ALL, NULL);
	assert_int_equal(none->nr_jobs, 0);
	before->processes[0].ended_ms = 4000;
	next();
	s = show(ALL, "a");
	assert_int_equal(s->nr_jobs, 1);
	assert_string_equal(s->jobs[0].cgroup, "/a");
	assert_int_equal(s->jobs[0].uid, 1000);
	assert_int_equal(s->jobs[0].started_ms, 1001);
	assert_int_equal(s->jobs[0].ended_ms, 4000);
	/* Both processes count, and both have details. */
	assert_int_equal(s->jobs[0].gone_ranks.ranks[0].account.nr_steps, 20);
	assert_int_equal(s->jobs[0].gone_ranks.ranks[0].account.idle_ns[IDLE_DISK], 600);
	assert_int_equal(s->nr_processes, 2);
	assert_int_equal(s->processes[1].busy_ns, 700);
	assert_int_equal(snapshot_hist(s, &s->processes[1].hists, HIST_STEP)->count, 1);
}

static void test_a_job_is_found_by_name_or_cgroup(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL, *list = NULL;
	struct snapshot *other = NULL;

	add(1, "/a", 1000, JOB_UNIT);
	next();
	next();
	s = show(ALL, "/a");
	assert_int_equal(s->nr_processes, 1);
	list = show(ALL, NULL);
	assert_int_equal(list->nr_jobs, 1);
	assert_int_equal(list->nr_processes, 0);
	assert_int_equal(history_show(history, before, ALL, "b", &other), -ENOENT);
	assert_null(other);
}

static void test_a_user_is_shown_only_the_own_jobs(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *own = NULL, *mixed = NULL;
	struct snapshot *other = NULL;

	add(1, "/a", 1000, JOB_UNIT);
	add(2, "/b", 1001, JOB_UNIT);
	add(3, "/c", 1000, JOB_UNIT);
	add(4, "/c", 1001, JOB_UNIT);
	next();
	next();
	own = show(1000, NULL);
	assert_int_equal(own->nr_jobs, 1);
	assert_string_equal(own->jobs[0].name, "a");
	assert_int_equal(history_show(history, before, 1000, "b", &other), -ENOENT);
	assert_int_equal(history_show(history, before, 1000, "c", &other), -ENOENT);
	mixed = show(ALL, "c");
	assert_int_equal(mixed->jobs[0].uid, SNAPSHOT_UID_UNKNOWN);
}

/* The steps of a Slurm job are runs of one job; a session runs one job after another. */
static void test_a_job_that_comes_back(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL, *list = NULL;

	for (u32 run = 0; run < 3; run++) {
		add(10 + run, "/slurm", 1000, JOB_SLURM);
		add(20 + run, "/session", 1000, JOB_SESSION);
		next();
		next();
	}
	s = show(ALL, "slurm");
	assert_int_equal(s->jobs[0].gone_ranks.ranks[0].account.nr_steps, 30);
	assert_int_equal(s->jobs[0].started_ms, 1010);
	assert_int_equal(s->nr_processes, 3);
	list = show(ALL, NULL);
	assert_int_equal(list->nr_jobs, 4);
}

static void run_job(u32 i, u32 uid)
{
	char cgroup[32];

	snprintf(cgroup, sizeof(cgroup), "/job%u", i);
	add(i, cgroup, uid, JOB_SLURM);
	next();
	next();
}

/* One user starts many short jobs. */
static void test_many_jobs_of_one_user_push_out_only_their_own(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = NULL, *few = NULL, *other = NULL;

	for (u32 i = 1; i <= 10; i++)
		run_job(i, 1001);
	for (u32 i = 1000; i < 1000 + 2 * HISTORY_JOBS_MAX; i++)
		run_job(i, 1000);
	all = show(ALL, NULL);
	assert_int_equal(all->nr_jobs, HISTORY_JOBS_MAX);
	assert_int_equal(all->nr_dropped[DROP_SNAPSHOT_JOBS], HISTORY_JOBS_MAX + 10);
	/* The newest comes first. */
	assert_string_equal(all->jobs[0].cgroup, "/job1511");
	few = show(1001, NULL);
	assert_int_equal(few->nr_jobs, 10);
	assert_int_equal(few->nr_dropped[DROP_SNAPSHOT_JOBS], 0);
	other = show(1001, "job1");
	assert_int_equal(other->nr_processes, 1);
}

static void test_details_of_many_processes_are_left_out(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;

	for (u32 i = 0; i < 40; i++)
		add(1 + i, "/a", 1000, JOB_UNIT);
	next();
	next();
	s = show(ALL, "a");
	assert_int_equal(s->nr_processes, HISTORY_RANKS_MAX);
	assert_int_equal(s->jobs[0].nr_left_out, 40 - HISTORY_RANKS_MAX);
	assert_int_equal(s->jobs[0].gone_ranks.ranks[0].account.nr_steps, 400);
}

static void test_details_of_all_jobs_are_bounded(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *few = NULL;
	u64 nr_kept = 0;

	run_job(1, 1001);
	for (u32 job = 0; job < 100; job++) {
		char cgroup[32];

		snprintf(cgroup, sizeof(cgroup), "/many%u", job);
		for (u32 i = 0; i < HISTORY_RANKS_MAX; i++)
			add(1000 + 100 * job + i, cgroup, 1000, JOB_UNIT);
		next();
		next();
	}
	for (u32 job = 0; job < 100; job++) {
		CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
		char name[32];

		snprintf(name, sizeof(name), "many%u", job);
		s = show(ALL, name);
		nr_kept += s->nr_processes;
		assert_int_equal(s->nr_processes + s->jobs[0].nr_left_out, HISTORY_RANKS_MAX);
	}
	assert_in_range(nr_kept, HISTORY_PROCESSES_MAX / 2, HISTORY_PROCESSES_MAX - 1);
	few = show(1001, "job1");
	assert_int_equal(few->nr_processes, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_job_ends_with_its_last_process),
		TEST(test_a_job_is_found_by_name_or_cgroup),
		TEST(test_a_user_is_shown_only_the_own_jobs),
		TEST(test_a_job_that_comes_back),
		TEST(test_many_jobs_of_one_user_push_out_only_their_own),
		TEST(test_details_of_many_processes_are_left_out),
		TEST(test_details_of_all_jobs_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
