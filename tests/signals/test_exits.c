/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many processes end between two reads of the events: the final state of each one is reported,
 * also while other events fill their ring. Runs in a guest, because the ends of processes can be
 * followed only for the whole machine.
 */
#include "signals/native.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_PROCESSES 1024
#define NR_THREADS   3000 /* their ends do not fit in the ring of other events */

int runtime_launch(u64 ns);

static const char *launches_lib;

struct ends {
	u32 nr_processes;
	u64 nr_launches;
};

static void on_event(void *ctx, const struct event *event)
{
	struct ends *ends = ctx;

	if (event->kind != EVENT_EXIT)
		return;
	ends->nr_processes++;
	ends->nr_launches += ((const struct exit_event *)event)->process.nr_launches[LEVEL_RUNTIME];
}

static struct kernel *watch(struct ends *ends)
{
	struct library library = native_library(launches_lib, RUNTIME_CUDA, -1);
	struct kernel *kernel = native_kernel();

	assert_int_equal(kernel_attach_threads(kernel), 0);
	assert_int_equal(kernel_open_events(kernel, false, on_event, ends), 0);
	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	return kernel;
}

/* Starts processes that have launched once, and wait. */
static void start(pid_t *pids, u32 nr)
{
	int ready[2];
	char byte = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	for (u32 i = 0; i < nr; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			runtime_launch(0);
			if (write(ready[1], &byte, 1) != 1)
				_exit(1);
			pause();
		}
	}
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static void stop(const pid_t *pids, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(kill(pids[i], SIGKILL), 0);
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
}

static void test_all_ends_are_reported(void **state)
{
	static pid_t pids[NR_PROCESSES];
	struct ends ends = {};
	struct kernel *kernel = watch(&ends);
	struct kernel_drops drops;

	_Static_assert(NR_PROCESSES <= EXITS_MAX, "more are not kept");
	start(pids, NR_PROCESSES);
	assert_true(kernel_read_events(kernel) >= 0);
	stop(pids, NR_PROCESSES);
	assert_true(kernel_read_events(kernel) >= 0);
	drops = kernel_drops(kernel);
	print_message("# %u of %u ends reported; dropped: %llu events, %llu program runs\n",
		      ends.nr_processes, NR_PROCESSES, drops.nr_events, drops.nr_bpf_program_runs);
	assert_int_equal(drops.nr_events, 0);
	assert_int_equal(ends.nr_processes, NR_PROCESSES);
	assert_int_equal(ends.nr_launches, NR_PROCESSES);
	kernel_free(kernel);
}

static void *no_work(void *arg)
{
	return arg;
}

/* A process whose threads end all the time. */
static pid_t start_flood(void)
{
	int done[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		runtime_launch(0);
		for (u32 i = 0; i < NR_THREADS; i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, no_work, NULL) ||
			    pthread_join(thread, NULL))
				_exit(1);
		}
		if (write(done[1], &byte, 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(done[0], &byte, 1), 1);
	close(done[0]);
	close(done[1]);
	return pid;
}

static void test_other_events_do_not_hide_an_end(void **state)
{
	struct ends ends = {};
	struct kernel *kernel = watch(&ends);
	pid_t flood = start_flood(), pid;

	start(&pid, 1);
	stop(&pid, 1);
	assert_true(kernel_drops(kernel).nr_events > 0);
	assert_true(kernel_read_events(kernel) >= 0);
	assert_int_equal(ends.nr_processes, 1);
	stop(&flood, 1);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ends_are_reported),
		cmocka_unit_test(test_other_events_do_not_hide_an_end),
	};

	if (argc != 2)
		return 2;
	launches_lib = argv[1];
	return cmocka_run_group_tests_name("exits", tests, NULL, NULL);
}
