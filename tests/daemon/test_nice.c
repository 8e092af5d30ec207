/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests the nice actuator on threads of a process that the test starts, with a fake kernel that
 * tells which threads there are, and with a fake clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/nice.h"

#define KERNEL	   ((struct kernel *)&seen)
#define NR_THREADS 300
#define PER_SECOND 256
#define SAMPLE_NS  (200 * NSEC_PER_MSEC)
#define WAIT_MS	   120000 /* ends a test that would hang */

static struct {
	struct process_state process;
	struct thread_record threads[NR_THREADS];
	u32 nr_threads;
} seen;

static u32 nr_kills = 3;
static u64 clock_ns;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	ret->tv_sec = (time_t)(clock_ns / NSEC_PER_SEC);
	ret->tv_nsec = (long)(clock_ns % NSEC_PER_SEC);
	return 0;
}

int kernel_snapshot_read(struct kernel *kernel, struct kernel_snapshot *ret)
{
	*ret = (struct kernel_snapshot){ .nr_processes = 1, .nr_threads = seen.nr_threads };
	ret->processes = calloc(1, sizeof(*ret->processes));
	ret->threads = calloc(NR_THREADS, sizeof(*ret->threads));
	ret->processes[0] = seen.process;
	ret->processes[0].task.signals.last_sync_ns = clock_ns;
	memcpy(ret->threads, seen.threads, sizeof(seen.threads));
	return 0;
}

void kernel_snapshot_done(struct kernel_snapshot *snapshot)
{
	free(snapshot->processes);
	free(snapshot->threads);
}

/* The process with the threads. It forks a child on request, and tells the child's tid. */
static struct {
	pid_t pid;
	int to;
	int from;
} job;

static void *thread_main(void *tids)
{
	u32 tid = (u32)syscall(SYS_gettid);

	if (write(*(int *)tids, &tid, sizeof(tid)) != sizeof(tid))
		abort();
	pause();
	return NULL;
}

static void job_main(int from, int to)
{
	pthread_attr_t attr;
	pthread_t thread;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 16);
	for (u32 i = 1; i < NR_THREADS; i++)
		if (pthread_create(&thread, &attr, thread_main, &to) != 0)
			abort();
	while (read(from, &byte, 1) == 1) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		if (write(to, &pid, sizeof(pid)) != sizeof(pid))
			abort();
	}
	_exit(0);
}

static struct sched_attr attr_of(u32 tid)
{
	struct sched_attr attr = {};

	assert_int_equal(syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0), 0);
	return attr;
}

static int nice_of(u32 tid)
{
	return attr_of(tid).sched_nice;
}

/* Field 22, which is 20 fields after the name. */
static u64 start_ns_of(u32 tid)
{
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", (u32)job.pid, tid);
	assert_true(file_read_text(path, text, sizeof(text)) > 0);
	at = strrchr(text, ')');
	for (int i = 0; i < 20; i++)
		at = strchr(at + 1, ' ');
	return strtoull(at, NULL, 10) * (NSEC_PER_SEC / (u64)sysconf(_SC_CLK_TCK));
}

static void see(u32 i, u32 tid)
{
	seen.threads[i] = (struct thread_record){ .tgid = (u32)job.pid,
						  .tid = tid,
						  .role = ROLE_LAUNCHER,
						  .start_ns = start_ns_of(tid) };
}

static int job_start(void **state)
{
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		return -1;
	job.pid = fork();
	if (job.pid == 0) {
		close(to[1]);
		job_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	job.to = to[1];
	job.from = from[0];
	clock_ns = 1000 * NSEC_PER_SEC;
	seen.process = (struct process_state){ .holds_gpu = 1, .launcher_tid = (u32)job.pid };
	seen.process.task.pid = (u32)job.pid;
	seen.nr_threads = 1;
	see(0, (u32)job.pid);
	for (u32 i = 1; i < NR_THREADS; i++) {
		u32 tid;

		if (read(job.from, &tid, sizeof(tid)) != sizeof(tid))
			return -1;
		see(i, tid);
	}
	return 0;
}

static int job_end(void **state)
{
	kill(job.pid, SIGKILL);
	waitpid(job.pid, NULL, 0);
	close(job.to);
	close(job.from);
	return 0;
}

static struct nice *acting(void)
{
	struct nice *nice = NULL;

	assert_int_equal(nice_new(&nice), 0);
	assert_int_equal(nice_act(nice, KERNEL, 0), 0);
	assert_true(nice_is_acting(nice));
	return nice;
}

static void act_after(struct nice *nice, u64 ns)
{
	clock_ns += ns;
	assert_int_equal(nice_act(nice, KERNEL, 0), 0);
}

static bool is_default(u32 tid)
{
	struct sched_attr attr = attr_of(tid), own = attr_of(0);

	return attr.sched_nice == 0 && !(attr.sched_flags & SCHED_FLAG_RESET_ON_FORK) &&
	       attr.sched_runtime == own.sched_runtime;
}

static void test_a_promoted_thread_is_restored_when_its_role_ends(void **state)
{
	struct nice *nice = acting();

	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	assert_int_equal(nice_counts(nice).nr_threads, 1);
	seen.threads[0].role = ROLE_OTHER;
	act_after(nice, SAMPLE_NS);
	assert_true(is_default((u32)job.pid));
	assert_int_equal(nice_counts(nice).nr_threads, 0);
	assert_int_equal(nice_counts(nice).nr_changes, 2);
	nice_free(nice);
}

static void test_a_process_that_is_no_longer_seen_is_restored(void **state)
{
	struct nice *nice = acting();

	seen.nr_threads = 0;
	act_after(nice, SAMPLE_NS);
	assert_true(is_default((u32)job.pid));
	nice_free(nice);
}

static void test_stop_restores(void **state)
{
	struct nice *nice = acting();

	assert_int_equal(nice_act(nice, NULL, 0), 0);
	assert_false(nice_is_acting(nice));
	assert_true(is_default((u32)job.pid));
	act_after(nice, NSEC_PER_SEC);
	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	nice_free(nice);
	assert_true(is_default((u32)job.pid));
}

static void test_a_process_without_evidence_is_not_touched(void **state)
{
	struct nice *nice;

	seen.process.holds_gpu = 0;
	nice = acting();
	assert_int_equal(nice_of((u32)job.pid), 0);
	assert_int_equal(nice_counts(nice).nr_changes, 0);
	nice_free(nice);
}

static void test_a_reused_tid_is_not_touched(void **state)
{
	struct nice *nice;

	seen.threads[0].start_ns -= NSEC_PER_SEC;
	nice = acting();
	assert_int_equal(nice_of((u32)job.pid), 0);
	nice_free(nice);
}

static void test_a_nice_value_of_another_program_stays(void **state)
{
	struct nice *nice;

	assert_int_equal(setpriority(PRIO_PROCESS, (u32)job.pid, 5), 0);
	nice = acting();
	act_after(nice, NSEC_PER_SEC);
	assert_int_equal(nice_of((u32)job.pid), 5);
	assert_int_equal(nice_counts(nice).nr_changes, 0);
	nice_free(nice);
	assert_int_equal(nice_of((u32)job.pid), 5);
}

static void test_a_thread_that_another_program_changed_is_left_alone(void **state)
{
	struct nice *nice = acting();

	assert_int_equal(setpriority(PRIO_PROCESS, (u32)job.pid, 0), 0);
	act_after(nice, NSEC_PER_SEC);
	act_after(nice, NSEC_PER_SEC);
	assert_int_equal(nice_of((u32)job.pid), 0);
	assert_int_equal(nice_counts(nice).nr_lost, 1);
	assert_int_equal(nice_counts(nice).nr_threads, 0);
	nice_free(nice);
}

static void test_another_policy_stays(void **state)
{
	const struct sched_attr idle = { .size = sizeof(idle), .sched_policy = SCHED_IDLE };
	struct nice *nice;

	assert_int_equal(syscall(SYS_sched_setattr, job.pid, &idle, 0), 0);
	nice = acting();
	assert_int_equal(attr_of((u32)job.pid).sched_policy, SCHED_IDLE);
	assert_int_equal(nice_of((u32)job.pid), 0);
	nice_free(nice);
}

static void test_a_batch_thread_stays_batch(void **state)
{
	const struct sched_attr batch = { .size = sizeof(batch), .sched_policy = SCHED_BATCH };
	struct nice *nice;

	assert_int_equal(syscall(SYS_sched_setattr, job.pid, &batch, 0), 0);
	nice = acting();
	assert_int_equal(attr_of((u32)job.pid).sched_policy, SCHED_BATCH);
	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	nice_free(nice);
	assert_int_equal(attr_of((u32)job.pid).sched_policy, SCHED_BATCH);
	assert_true(is_default((u32)job.pid));
}

static u32 job_forks(void)
{
	pid_t pid;

	assert_int_equal(write(job.to, "", 1), 1);
	assert_int_equal(read(job.from, &pid, sizeof(pid)), sizeof(pid));
	assert_true(pid > 0);
	return (u32)pid;
}

static void test_a_child_of_a_promoted_thread_has_the_default(void **state)
{
	struct nice *nice = acting();
	u32 child = job_forks();

	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	assert_true(is_default(child));
	kill((pid_t)child, SIGKILL);
	nice_free(nice);
}

static void test_a_spinning_launcher_is_restored(void **state)
{
	struct nice *nice = acting();

	seen.threads[0].sync_spin_ns = seen.threads[0].cpu_ns = SAMPLE_NS / 2;
	act_after(nice, SAMPLE_NS);
	assert_true(is_default((u32)job.pid));
	nice_free(nice);
}

static void test_a_thread_is_promoted_once_in_a_second(void **state)
{
	struct nice *nice = acting();

	seen.nr_threads = 0;
	act_after(nice, SAMPLE_NS);
	seen.nr_threads = 1;
	/* It was gone, so its history is too: only a thread that stays has a limit. */
	act_after(nice, SAMPLE_NS);
	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	/* The row of a loader is another one: restored, and promoted again after a second. */
	seen.threads[0].role = ROLE_LOADER;
	seen.process.data_waited_ns = clock_ns;
	act_after(nice, SAMPLE_NS);
	assert_true(is_default((u32)job.pid));
	act_after(nice, SAMPLE_NS);
	assert_true(is_default((u32)job.pid));
	assert_int_equal(nice_counts(nice).nr_dropped, 1);
	act_after(nice, NSEC_PER_SEC);
	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_LATE_LOADER].nice);
	nice_free(nice);
}

static u32 nr_promoted(void)
{
	u32 nr = 0;

	for (u32 i = 0; i < NR_THREADS; i++)
		nr += nice_of(seen.threads[i].tid) != 0;
	return nr;
}

static void test_changes_of_all_threads_are_limited(void **state)
{
	struct nice *nice;

	seen.nr_threads = NR_THREADS;
	nice = acting();
	assert_int_equal(nr_promoted(), PER_SECOND);
	assert_int_equal(nice_counts(nice).nr_dropped, NR_THREADS - PER_SECOND);
	act_after(nice, NSEC_PER_SEC);
	assert_int_equal(nr_promoted(), NR_THREADS);
	nice_free(nice);
	assert_int_equal(nr_promoted(), 0);
}

static void short_sleep(void)
{
	usleep(1000);
}

/* The child of a process that is not the job; 0: it has none. */
static pid_t watcher_of(pid_t parent)
{
	char path[64], text[64] = "", *at = text;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	file_read_text(path, text, sizeof(text));
	do {
		pid = (pid_t)strtol(at, &at, 10);
	} while (pid && pid == job.pid);
	return pid;
}

/* A process that acts until it is killed, as zerneld does. */
static pid_t start_actor(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct nice *nice;

		/* An assertion would continue with the next test here. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (nice_new(&nice) < 0 || nice_act(nice, KERNEL, 0) < 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(EXIT_FAILURE);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void test_the_watcher_restores_when_zerneld_is_killed(void **state)
{
	pid_t actor, watcher;
	char path[64], comm[COMM_LEN + 1];

	seen.nr_threads = NR_THREADS;
	actor = start_actor();
	watcher = watcher_of(actor);
	assert_int_equal(nr_promoted(), PER_SECOND);
	/* A service manager sends these to all processes of a service. */
	kill(watcher, SIGTERM);
	kill(watcher, SIGINT);
	kill(watcher, SIGHUP);
	kill(watcher, SIGABRT);
	snprintf(path, sizeof(path), "/proc/%d/comm", watcher);
	assert_true(file_read_text(path, comm, sizeof(comm)) > 0);
	assert_string_equal(comm, "zerneld-restore\n");
	/* A thread that another program changed meanwhile is left alone. */
	assert_int_equal(setpriority(PRIO_PROCESS, seen.threads[7].tid, 3), 0);
	kill(actor, SIGKILL);
	waitpid(actor, NULL, 0);
	for (u32 i = 0; i < WAIT_MS && nr_promoted() > 1; i++)
		short_sleep();
	for (u32 i = 0; i < NR_THREADS; i++)
		if (i != 7)
			assert_true(is_default(seen.threads[i].tid));
	assert_int_equal(nice_of(seen.threads[7].tid), 3);
}

/* A part of the campaign `kill`: `test_nice_actuator KILLS`. */
static void test_every_kill_restores(void **state)
{
	u32 longest = 0;

	seen.nr_threads = NR_THREADS;
	for (u32 i = 0; i < nr_kills; i++) {
		pid_t actor = start_actor();
		u32 waited = 0;

		assert_int_equal(nr_promoted(), PER_SECOND);
		kill(actor, SIGKILL);
		waitpid(actor, NULL, 0);
		while (nr_promoted() && waited++ < WAIT_MS)
			short_sleep();
		assert_int_equal(nr_promoted(), 0);
		longest = waited > longest ? waited : longest;
	}
	print_message("# %u kills: all values restored after %u waits of 1 ms at most\n", nr_kills,
		      longest);
}

static void test_the_watcher_has_one_capability_and_no_files(void **state)
{
	struct nice *nice = acting();
	char path[64], text[4096], expected[64];
	pid_t watcher = watcher_of(getpid());

	assert_true(watcher);
	snprintf(path, sizeof(path), "/proc/%d/status", watcher);
	assert_true(file_read_text(path, text, sizeof(text)) > 0);
	snprintf(expected, sizeof(expected), "CapEff:\t%016x", 1U << 23);
	assert_non_null(strstr(text, expected));
	snprintf(expected, sizeof(expected), "CapPrm:\t%016x", 1U << 23);
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
	snprintf(path, sizeof(path), "/proc/%d/fd/0", watcher);
	assert_int_equal(access(path, F_OK), 0);
	for (int fd = 1; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", watcher, fd);
		assert_int_equal(readlink(path, text, sizeof(text)), -1);
	}
	nice_free(nice);
	assert_int_equal(kill(watcher, 0), -1);
}

static void watcher_is_started_again_after(int number)
{
	struct nice *nice = acting();
	pid_t watcher = watcher_of(getpid());

	act_after(nice, NSEC_PER_SEC);
	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	kill(watcher, number);
	for (u32 i = 0; i < WAIT_MS && nice_is_acting(nice); i++) {
		assert_int_equal(nice_act(nice, KERNEL, 0), 0);
		short_sleep();
	}
	assert_false(nice_is_acting(nice));
	assert_true(is_default((u32)job.pid));
	act_after(nice, NSEC_PER_SEC);
	assert_true(nice_is_acting(nice));
	assert_int_equal(nice_of((u32)job.pid), nice_rules[CLASS_FEEDER].nice);
	nice_free(nice);
}

static void test_a_watcher_that_is_killed_is_started_again(void **state)
{
	watcher_is_started_again_after(SIGKILL);
}

/* It would restore nothing while it is stopped. The end of it does not wait for it. */
static void test_a_watcher_that_is_stopped_is_started_again(void **state)
{
	watcher_is_started_again_after(SIGSTOP);
}

static void test_a_stopped_watcher_does_not_delay_the_end(void **state)
{
	struct nice *nice = acting();

	kill(watcher_of(getpid()), SIGSTOP);
	nice_free(nice);
}

static bool may_set_nice(void)
{
	bool may = setpriority(PRIO_PROCESS, 0, -1) == 0;

	setpriority(PRIO_PROCESS, 0, 0);
	return may;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, job_start, job_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest nice[] = {
		TEST(test_a_promoted_thread_is_restored_when_its_role_ends),
		TEST(test_a_process_that_is_no_longer_seen_is_restored),
		TEST(test_stop_restores),
		TEST(test_a_process_without_evidence_is_not_touched),
		TEST(test_a_reused_tid_is_not_touched),
		TEST(test_a_nice_value_of_another_program_stays),
		TEST(test_a_thread_that_another_program_changed_is_left_alone),
		TEST(test_another_policy_stays),
		TEST(test_a_batch_thread_stays_batch),
		TEST(test_a_child_of_a_promoted_thread_has_the_default),
		TEST(test_a_spinning_launcher_is_restored),
		TEST(test_a_thread_is_promoted_once_in_a_second),
		TEST(test_changes_of_all_threads_are_limited),
		TEST(test_the_watcher_restores_when_zerneld_is_killed),
		TEST(test_every_kill_restores),
		TEST(test_the_watcher_has_one_capability_and_no_files),
		TEST(test_a_watcher_that_is_killed_is_started_again),
		TEST(test_a_watcher_that_is_stopped_is_started_again),
		TEST(test_a_stopped_watcher_does_not_delay_the_end),
	};

	if (!may_set_nice()) {
		puts("1..0 # SKIP this user may not lower nice values (CAP_SYS_NICE)");
		return 0;
	}
	if (argc > 1)
		nr_kills = (u32)atoi(argv[1]);
	return cmocka_run_group_tests(nice, NULL, NULL);
}
