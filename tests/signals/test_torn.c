/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process whose state changes during each read does not hide the other processes. One process
 * of this test looks as if it was written all the time. And a launcher whose end was not reported
 * leaves nothing: no program of this test sees ends.
 */
#include "signals/native.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int runtime_launch(u64 ns);

static const char *launches_lib;

/* Starts a process that has launched once, and waits. */
static pid_t start(void)
{
	int launched[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(launched, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
		runtime_launch(0);
		if (write(launched[1], &byte, 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(launched[0], &byte, 1), 1);
	close(launched[0]);
	close(launched[1]);
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Counts a write of the process that began and does not end. */
static void tear(struct kernel *kernel, pid_t pid)
{
	const struct bpf_map *map = kernel->skel->maps.processes;
	size_t size = bpf_map__value_size(map);
	CLEANUP_FREE struct process_state *storage = malloc(size);
	CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	assert_non_null(storage);
	assert_true(pidfd >= 0);
	assert_int_equal(bpf_map__lookup_elem(map, &pidfd, sizeof(pidfd), storage, size, 0), 0);
	storage->nr_writes_begun++;
	assert_int_equal(bpf_map__update_elem(map, &pidfd, sizeof(pidfd), storage, size, BPF_EXIST),
			 0);
}

static void test_the_others_are_read(void **state)
{
	struct library library = native_library(launches_lib, RUNTIME_CUDA, -1);
	struct kernel *kernel = native_kernel();
	struct process_state state_of[2];
	pid_t pids[2];

	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	for (u32 i = 0; i < 2; i++)
		pids[i] = start();
	assert_int_equal(kernel_drops(kernel).nr_torn, 0);
	tear(kernel, pids[0]);
	for (u32 i = 0; i < 2; i++)
		state_of[i] = native_state(kernel, pids[i]);
	/* Its identity is valid, so that a sweep does not take it for dead. */
	assert_int_equal(state_of[0].task.pid, pids[0]);
	assert_false(process_is_whole(&state_of[0]));
	assert_true(process_is_whole(&state_of[1]));
	assert_int_equal(state_of[1].nr_launches[LEVEL_RUNTIME], 1);
	assert_true(kernel_drops(kernel).nr_torn > 0);
	for (u32 i = 0; i < 2; i++)
		stop(pids[i]);
	kernel_free(kernel);
}

static u32 nr_launchers(struct kernel *kernel)
{
	struct consumer_key at, next;
	u32 nr = 0;

	for (int more =
		     bpf_map__get_next_key(kernel->skel->maps.consumers, NULL, &next, sizeof(next));
	     more == 0;
	     more = bpf_map__get_next_key(kernel->skel->maps.consumers, &at, &next, sizeof(next))) {
		at = next;
		nr++;
	}
	return nr;
}

static void test_a_launcher_that_is_gone(void **state)
{
	struct library library = native_library(launches_lib, RUNTIME_CUDA, -1);
	struct kernel *kernel = native_kernel();
	pid_t pids[2];

	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	for (u32 i = 0; i < 2; i++)
		pids[i] = start();
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(nr_launchers(kernel), 2);
	stop(pids[0]);
	assert_int_equal(nr_launchers(kernel), 2);
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(nr_launchers(kernel), 1);
	stop(pids[1]);
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(nr_launchers(kernel), 0);
	assert_int_equal(kernel_nr_entries(kernel), 0);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_others_are_read),
		cmocka_unit_test(test_a_launcher_that_is_gone),
	};

	if (argc != 2)
		return 2;
	launches_lib = argv[1];
	return cmocka_run_group_tests_name("torn", tests, NULL, NULL);
}
