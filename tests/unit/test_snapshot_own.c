/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests that the part of a snapshot that belongs to a user has nothing of another user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/snapshot_own.h"

#define ALICE 1000
#define BOB   1001

static struct snapshot_process *add(struct snapshot *s, u32 pid, const char *cgroup, u32 uid,
				    const char *comm)
{
	struct snapshot_process *process = snapshot_add_process(s, pid);

	process->uid = uid;
	process->job = snapshot_add_job(s, cgroup, cgroup);
	process->task.known = 1;
	process->task.gpu = pid % 10;
	strcpy(process->comm, comm);
	snapshot_set_transitions(s, process, pid);
	hist_record(snapshot_add_hist(s, &process->hists, HIST_STEP), pid);
	snapshot_add_thread(s, pid, ROLE_LAUNCHER)->pid = pid;
	strcpy(s->threads[s->nr_threads - 1].comm, comm);
	snapshot_join_job(s, process);
	return process;
}

static struct snapshot *make(void)
{
	struct snapshot_limits limits = { 8, 8, 8, 8, 8, 8 };
	struct snapshot *s = NULL;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	for (u32 i = 0; i < 8; i++)
		snapshot_add_gpu(s, i);
	strcpy(s->host, "node7");
	add(s, 11, "/alice", ALICE, "alices");
	add(s, 12, "/bob", BOB, "bobs");
	snapshot_add_comm(s, 11);
	snapshot_add_comm(s, 12);
	return s;
}

static struct snapshot *own(const struct snapshot *all, u32 uid)
{
	struct snapshot *s = NULL;

	assert_int_equal(snapshot_own(all, uid, &s), 0);
	return s;
}

static void test_only_the_own_processes_are_left(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = make(), *s = own(all, BOB);

	assert_true(s->is_own);
	assert_string_equal(s->host, "node7");
	assert_int_equal(s->nr_processes, 1);
	assert_string_equal(s->processes[0].comm, "bobs");
	assert_int_equal(s->nr_jobs, 1);
	assert_string_equal(snapshot_job(s, &s->processes[0])->cgroup, "/bob");
	assert_int_equal(s->nr_threads, 1);
	assert_string_equal(s->threads[0].comm, "bobs");
	assert_int_equal(s->nr_comms, 1);
	assert_int_equal(s->comms[0].pid, 12);
	assert_int_equal(s->nr_role[ROLE_LAUNCHER], 1);
	assert_int_equal(s->nr_transitions, 12);
	assert_int_equal(snapshot_hist(s, &s->processes[0].hists, HIST_STEP)->max, 12);
	/* GPU 2, which the process uses. */
	assert_int_equal(s->nr_gpus, 1);
	assert_int_equal(s->gpus[0].gpu, 2);
}

static void test_a_user_without_processes_gets_nothing(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = make(), *s = own(all, 5);

	assert_int_equal(s->nr_processes + s->nr_jobs + s->nr_threads + s->nr_gpus + s->nr_hists,
			 0);
}

static void test_sums_of_the_node_are_left_out(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = make(), *s = NULL;
	const struct snapshot_quota quotas[] = { { ALICE, 1, 0, 0 }, { BOB, 2, 0, 0 } };

	all->nr_dropped[DROP_EVENTS] = all->nr_restarts = 1;
	all->learning.nr_profiles = all->probes.nr_processes = all->cost.cpu_ns = 1;
	all->sched.nr_nice_threads = all->sched.classes[0].ran_ns = 1;
	all->gone_collectives.nr[0] = all->gone_ranks.nr = 1;
	strcpy(all->sched.reason, "the cgroup /alice has a limit");
	strcpy(all->probes.stepped, "a");
	snapshot_add_quota(all, &quotas[0]);
	snapshot_add_quota(all, &quotas[1]);
	s = own(all, BOB);
	assert_int_equal(s->nr_dropped[DROP_EVENTS] + s->nr_restarts, 0);
	assert_int_equal(s->learning.nr_profiles + s->probes.nr_processes + s->cost.cpu_ns, 0);
	assert_int_equal(s->sched.nr_nice_threads + s->sched.classes[0].ran_ns, 0);
	assert_int_equal(s->gone_collectives.nr[0] + s->gone_ranks.nr, 0);
	assert_string_equal(s->sched.reason, "");
	assert_string_equal(s->probes.stepped, "");
	assert_int_equal(s->nr_over_quota, 1);
	assert_int_equal(s->over_quota[0].uid, BOB);
}

static void test_tasks_of_others_are_no_culprits(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = make(), *s = NULL;
	struct snapshot_process *process = &all->processes[1];

	process->culprits[0] = (struct snapshot_culprit){ IDLE_RUNQUEUE, 0, 9, "alices" };
	process->culprits[1] = (struct snapshot_culprit){ IDLE_RUNQUEUE, 0, 8, "bobs" };
	process->culprits[2] = (struct snapshot_culprit){ IDLE_DISK, 0, 7, "nvme0n1" };
	process->culprits[3] = (struct snapshot_culprit){ IDLE_LOADER_RUNQUEUE, 0, 6, "cron" };
	process->nr_culprits = 4;
	s = own(all, BOB);
	assert_int_equal(s->processes[0].nr_culprits, 2);
	assert_string_equal(s->processes[0].culprits[0].name, "bobs");
	assert_string_equal(s->processes[0].culprits[1].name, "nvme0n1");
	assert_string_equal(s->processes[0].culprits[2].name, "");
}

/* A pod or a service can have processes of several users. */
static void test_a_job_of_several_users(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = make(), *s = NULL;
	struct snapshot_job *job;

	add(all, 13, "/bob", ALICE, "alices");
	all->processes[1].consumer_pid = 13;
	job = &all->jobs[1];
	strcpy(job->names.claimed_name, "alices");
	strcpy(job->names.pod, "pod");
	job->gone_collectives.nr[0] = job->gone_ranks.nr = 1;
	job->peak_bytes = job->started_ms = 7;
	hist_record(snapshot_add_hist(all, &job->gone, HIST_IDLE), 1);
	s = own(all, BOB);
	assert_int_equal(s->nr_processes, 1);
	assert_int_equal(s->processes[0].consumer_pid, 0);
	job = &s->jobs[0];
	assert_string_equal(job->cgroup, "/bob");
	assert_string_equal(job->names.pod, "pod");
	assert_string_equal(job->names.claimed_name, "");
	assert_int_equal(job->uid, SNAPSHOT_UID_UNKNOWN);
	assert_int_equal(job->gone_collectives.nr[0] + job->gone_ranks.nr, 0);
	assert_int_equal(job->peak_bytes + job->started_ms, 0);
	assert_null(snapshot_hist(s, &job->gone, HIST_IDLE));
}

/* A process of another user that has just ended had the same pid. */
static void test_threads_of_a_reused_pid_are_left_out(void **state)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *all = make(), *s = NULL;

	add(all, 12, "/alice", ALICE, "alices");
	s = own(all, BOB);
	assert_int_equal(s->nr_processes, 1);
	assert_int_equal(s->nr_threads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_the_own_processes_are_left),
		cmocka_unit_test(test_a_user_without_processes_gets_nothing),
		cmocka_unit_test(test_sums_of_the_node_are_left_out),
		cmocka_unit_test(test_tasks_of_others_are_no_culprits),
		cmocka_unit_test(test_a_job_of_several_users),
		cmocka_unit_test(test_threads_of_a_reused_pid_are_left_out),
	};

	return cmocka_run_group_tests_name("own snapshots", tests, NULL, NULL);
}
