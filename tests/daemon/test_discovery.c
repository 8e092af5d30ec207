/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests discovery.c with a process that scans, which the test plays. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "fake_helper.h"

#include "base/time.h"
#include "collect/library_message.h"
#include "daemon/discovery.h"

#define PROGRAM PROGRAM_LIBRARIES
#define HEAD	offsetof(struct scan_message, found)
#define UID	1000

static struct discovery *discovery;
static struct library_set *set;
static struct scan_request request;
static struct job_scan named;

static void on_names(void *ctx, const struct job_scan *job)
{
	named = *job;
}

static struct {
	u32 nr;
	int pidfd, err;
	bool has_python;
} python_told;

static void on_python(void *ctx, pid_t pid, int pidfd, int err, const struct python_scan *python)
{
	python_told.nr++;
	python_told.pidfd = pidfd;
	python_told.err = err;
	python_told.has_python = python;
}

static bool holds_gpu(void *ctx, pid_t pid, int pidfd)
{
	return false;
}

static int attach(void *ctx, const struct library *library)
{
	return 0;
}

static u32 nr_fds(void *ctx, const struct library_probes *probes)
{
	return 1;
}

static int setup(void **state)
{
	static const struct library_ops ops = {
		.attach = attach, .detach = attach, .nr_fds = nr_fds, .holds_gpu = holds_gpu
	};

	processes_reset();
	memset(&named, 0, sizeof(named));
	memset(&python_told, 0, sizeof(python_told));
	assert_int_equal(library_set_new("/proc", &ops, NULL, &set), 0);
	assert_int_equal(discovery_new(NO_STARTER, NO_LOOP, &discovery), 0);
	discovery_set_target(discovery, set);
	discovery_set_names(discovery, on_names, NULL);
	discovery_add_python(discovery, on_python, NULL);
	discovery_tick(discovery, time_now_ns());
	return 0;
}

static int teardown(void **state)
{
	discovery_free(discovery);
	library_set_free(set);
	return 0;
}

/* Returns the number of rows of the next request, or a negative errno. */
static int next_request(void)
{
	ssize_t size;

	discovery_tick(discovery, time_now_ns());
	size = process_receive(PROGRAM, &request, sizeof(request));
	return size < 0 ? (int)size : (int)request.nr;
}

static void say(const struct scan_message *message, size_t size)
{
	process_send(PROGRAM, message, HEAD + size, -1);
}

static void say_owner(pid_t pid, u32 uid)
{
	say(&(struct scan_message){ .kind = SCAN_OWNED, .owned = { .pid = pid, .owner.uid = uid } },
	    sizeof(struct scan_owned));
}

static void say_scanned(pid_t pid)
{
	say(&(struct scan_message){ .kind = SCAN_SCANNED, .scanned.pid = pid },
	    sizeof(struct library_scanned));
}

/* It maps a file with one traced call. */
static void say_found(int fd)
{
	static struct scan_message found = { .kind = SCAN_FOUND };

	found.found.runtime = call_rows[0].runtime;
	found.found.probes.nr = 1;
	process_send(PROGRAM, &found, HEAD + sizeof(found.found), fd);
}

static void want(pid_t pid)
{
	discovery_want(discovery, pid, LIBRARY_SCAN_MAPS);
}

static void note_quota(void *ctx, u32 uid, u64 nr_refused)
{
	u64 *nr = ctx;

	assert_int_equal(uid, UID);
	*nr = nr_refused;
}

static u64 nr_refused(void)
{
	u64 nr = 0;

	discovery_quotas(discovery, note_quota, &nr);
	return nr;
}

/* Gets to the request that scans these processes. */
static void own(u32 nr)
{
	assert_int_equal(next_request(), nr);
	for (u32 i = 0; i < nr; i++) {
		assert_int_equal(request.rows[i].kind, SCAN_OWNER);
		say_owner(request.rows[i].pid, UID);
	}
	assert_int_equal(next_request(), nr);
}

static void test_a_process_is_scanned_after_its_owner_is_known(void **state)
{
	assert_int_equal(next_request(), -EAGAIN);
	want(getpid());
	want(getpid());
	want(0);
	assert_true(discovery_is_wanted(discovery, getpid()));
	own(1);
	assert_int_equal(request.rows[0].pid, getpid());
	assert_int_equal(request.rows[0].kind, LIBRARY_SCAN_MAPS);
	assert_true(discovery_is_wanted(discovery, getpid()));
	say_scanned(getpid());
	assert_false(discovery_is_wanted(discovery, getpid()));
	assert_int_equal(next_request(), -EAGAIN);
	assert_int_equal(discovery_counts(discovery).nr_lost, 0);
}

/* It costs what a scan for libraries costs. The pidfd is that of the process that was scanned. */
static void test_an_interpreter_is_looked_for(void **state)
{
	struct scan_message answer = { .kind = SCAN_INTERPRETER,
				       .interpreter = { .pid = getpid(),
							.error = -EIO,
							.cost = { SCAN_QUEUE_FILES - 1, 1 } } };

	discovery_want_python(discovery, getpid());
	own(1);
	assert_int_equal(request.rows[0].kind, SCAN_PYTHON);
	say(&answer, sizeof(answer.interpreter));
	assert_int_equal(python_told.nr, 1);
	assert_true(python_told.pidfd >= 0);
	assert_int_equal(python_told.err, -EIO);
	assert_false(python_told.has_python);
	assert_int_equal(nr_refused(), 0);
	discovery_want_python(discovery, getpid());
	own(1);
	answer.interpreter.cost.nr_files = 1;
	say(&answer, sizeof(answer.interpreter));
	assert_int_equal(python_told.nr, 2);
	assert_int_equal(nr_refused(), 1);
}

static void test_all_processes_are_listed(void **state)
{
	struct scan_message list = { .kind = SCAN_PIDS, .nr = 2, .pids = { 1, getpid() } };

	discovery_want_all(discovery);
	assert_int_equal(next_request(), 0);
	say(&list, sizeof(list.pids));
	own(2);
}

static void test_the_rest_of_a_request_is_asked_for_again(void **state)
{
	pid_t first;

	want(1);
	want(getpid());
	own(2);
	first = request.rows[0].pid;
	say_scanned(first);
	say(&(struct scan_message){ .kind = SCAN_REST }, 0);
	assert_int_equal(next_request(), 1);
	assert_int_not_equal(request.rows[0].pid, first);
	assert_int_not_equal(request.rows[0].kind, SCAN_OWNER);
	assert_int_equal(processes[PROGRAM].nr_kills, 0);
}

static void test_names_of_a_job_are_passed_on(void **state)
{
	struct scan_message answer = { .kind = SCAN_NAMES,
				       .names = { .pid = 7, .job.cgroup = "/job" } };

	discovery_want_names(discovery, 7);
	own(1);
	assert_int_equal(request.rows[0].kind, SCAN_JOB);
	say(&answer, sizeof(answer.names));
	assert_string_equal(named.cgroup, "/job");
	assert_int_equal(processes[PROGRAM].nr_kills, 0);
	/* A failed search has no result. */
	memset(&named, 0, sizeof(named));
	discovery_want_names(discovery, 7);
	own(1);
	answer.names.error = -ENOENT;
	say(&answer, sizeof(answer.names));
	assert_string_equal(named.cgroup, "");
	assert_int_equal(discovery_counts(discovery).nr_lost, 0);
}

/* Messages that are possible, but no answer to the request. */
static void test_wrong_answers_end_the_process(void **state)
{
	static const struct {
		struct scan_message message;
		size_t size;
	} rows[] = {
		{ { .kind = SCAN_SCANNED, .scanned.pid = 2 }, sizeof(struct library_scanned) },
		{ { .kind = SCAN_OWNED, .owned.pid = 1 }, sizeof(struct scan_owned) },
		{ { .kind = SCAN_NAMES, .names.pid = 1 }, sizeof(struct scan_names) },
		{ { .kind = SCAN_REST }, 0 },
		{ { .kind = SCAN_PIDS }, SCAN_PIDS_MAX * sizeof(s32) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		teardown(state);
		setup(state);
		want(1);
		own(1);
		say(&rows[i].message, rows[i].size);
		assert_int_equal(processes[PROGRAM].nr_kills, 1);
		assert_int_equal(nr_refused(), 1);
		assert_int_equal(discovery_counts(discovery).nr_lost, 1);
		/* It is wanted still. */
		assert_true(discovery_is_wanted(discovery, 1));
	}
}

static void test_a_hung_scan_is_blamed_on_its_owner(void **state)
{
	want(1);
	own(1);
	discovery_tick(discovery, time_now_ns() + 100 * NSEC_PER_SEC);
	assert_int_equal(processes[PROGRAM].nr_kills, 1);
	assert_int_equal(nr_refused(), 1);
	/* The process that scans runs again, and this owner waits. */
	discovery_tick(discovery, time_now_ns() + 100 * NSEC_PER_SEC);
	assert_int_equal(processes[PROGRAM].nr_starts, 2);
	assert_int_equal(discovery_counts(discovery).nr_restarts, 1);
	assert_int_equal(next_request(), -EAGAIN);
	want(2);
	assert_int_equal(next_request(), 1);
	say_owner(2, UID + 1);
	assert_int_equal(next_request(), 1);
	assert_int_equal(request.rows[0].pid, 2);
}

static ssize_t scan_later(pid_t pid, u64 later_ns)
{
	ssize_t size;

	want(pid);
	assert_int_equal(next_request(), 1);
	say_owner(pid, UID);
	size = process_receive(PROGRAM, &request, sizeof(request));
	if (size > 0)
		return size;
	discovery_tick(discovery, time_now_ns() + later_ns);
	return process_receive(PROGRAM, &request, sizeof(request));
}

/* The server of a file does not answer, so the process that scans cannot be killed. */
static void test_an_owner_whose_scans_do_not_end_waits_for_them(void **state)
{
	u64 later_ns = 2 * SCAN_QUEUE_HUNG_NS;
	int ends[SCAN_QUEUE_STUCK];

	processes[PROGRAM].is_stuck = true;
	for (u32 i = 0; i < SCAN_QUEUE_STUCK; i++) {
		assert_true(scan_later((pid_t)(1 + i), later_ns) > 0);
		ends[i] = processes[PROGRAM].fd;
		discovery_tick(discovery, time_now_ns() + 2 * later_ns);
		discovery_tick(discovery, time_now_ns() + SCAN_QUEUE_HUNG_NS / 2);
		assert_int_equal(processes[PROGRAM].nr_starts, 2 + i);
	}
	assert_int_equal(scan_later(9, later_ns), -EAGAIN);
	close(ends[0]);
	discovery_tick(discovery, time_now_ns() + later_ns);
	assert_true(process_receive(PROGRAM, &request, sizeof(request)) > 0);
	close(ends[1]);
}

static void test_results_for_a_set_that_is_gone_are_ignored(void **state)
{
	want(1);
	own(1);
	discovery_set_target(discovery, NULL);
	say_scanned(1);
	assert_int_equal(processes[PROGRAM].nr_kills, 0);
	want(2);
	assert_false(discovery_is_wanted(discovery, 2));
	discovery_set_target(discovery, set);
	want(2);
	own(1);
}

/* Its exit event came before the result, and no other event would remove it. */
static void test_a_process_that_ended_during_its_scan_is_not_kept(void **state)
{
	int fd = memfd_create("library", MFD_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0 && fd >= 0);
	want(pid);
	own(1);
	say_found(fd);
	say_scanned(pid);
	assert_int_equal(library_set_count(set).nr_processes, 1);
	want(pid);
	own(1);
	say_found(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	say_scanned(pid);
	assert_int_equal(library_set_count(set).nr_processes, 0);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_process_is_scanned_after_its_owner_is_known),
		TEST(test_an_interpreter_is_looked_for),
		TEST(test_all_processes_are_listed),
		TEST(test_the_rest_of_a_request_is_asked_for_again),
		TEST(test_names_of_a_job_are_passed_on),
		TEST(test_wrong_answers_end_the_process),
		TEST(test_a_hung_scan_is_blamed_on_its_owner),
		TEST(test_an_owner_whose_scans_do_not_end_waits_for_them),
		TEST(test_results_for_a_set_that_is_gone_are_ignored),
		TEST(test_a_process_that_ended_during_its_scan_is_not_kept),
	};

	return cmocka_run_group_tests_name("discovery", tests, NULL, NULL);
}
