/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Compares ranks, sizes, operations and bytes of collectives in the state of the BPF
 * programs with the calls that the test programs made. They must be equal. Probes only
 * attach to the virtual GPU's libraries, so this runs on any machine. Tests that need to
 * see every exit only run if ZERNEL_IN_GUEST is set.
 */
#include "signals/comms.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "collect/kernel_internal.h"
#include "property/random.h"

#define NR_TAGS 3

struct shared *shared;

static struct kernel *kernel;
static struct library *library;
static char unseen_path[64];
static pid_t pids[NR_RANKS];
static u32 nr_pids;

static void log_libbpf(const char *text)
{
	print_error("# %s\n", text);
}

/* Returns whether a process ended, without reaping it. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

static void await_stage(u32 stage)
{
	for (u32 i = 0; i < nr_pids; i++)
		while (shared->truth[i].stage < stage) {
			assert_false(has_ended(pids[i]));
			usleep(1000);
		}
}

static void compare_sequence(const struct sequence *found, const struct true_comm *wanted)
{
	const struct collective_call *last;

	assert_int_equal(found->nr, wanted->nr);
	if (!wanted->nr)
		return;
	last = sequence_find(found, found->nr);
	assert_non_null(last);
	assert_int_equal(last->operation, wanted->operation);
	assert_int_equal(last->bytes, wanted->bytes);
	assert_true(last->entered_ns && last->returned_ns >= last->entered_ns);
}

static void compare_comms(pid_t pid, const struct process_state *process, const struct truth *truth,
			  u64 identities[NR_TAGS])
{
	struct sequence sequence;
	struct comms comms;
	u32 nr = 0;
	int err = kernel_read_comms(kernel, pid, &comms);

	if (err == -ENOENT && !truth->nr_comms)
		return;
	assert_int_equal(err, 0);
	for (u32 i = 0; i < COMMS_MAX; i++) {
		assert_true(comms.comm[i].state == COMM_READY || comms.comm[i].state == COMM_FREE);
		nr += comms.comm[i].state == COMM_READY;
	}
	assert_int_equal(nr, truth->nr_comms);
	for (u32 t = 0; t < truth->nr_comms; t++) {
		const struct true_comm *wanted = &truth->comm[t];
		const struct comm *found = NULL;

		for (u32 i = 0; i < COMMS_MAX; i++)
			if (comms.comm[i].state == COMM_READY &&
			    comms.comm[i].handle == wanted->handle)
				found = &comms.comm[i];
		assert_non_null(found);
		assert_int_equal(found->rank, wanted->rank);
		assert_int_equal(found->nr_ranks, wanted->nr_ranks);
		kernel_read_sequence(kernel, process, &comms, (u32)(found - comms.comm), &sequence);
		compare_sequence(&sequence, wanted);
		if (!wanted->tag)
			continue;
		assert_int_not_equal(found->identity, 0);
		if (identities[wanted->tag])
			assert_int_equal(found->identity, identities[wanted->tag]);
		identities[wanted->tag] = found->identity;
	}
}

static const struct process_state *compare_process(const struct kernel_snapshot *snapshot,
						   pid_t pid, const struct truth *truth)
{
	static const struct process_state none;
	const struct process_state *process = &none;

	for (u32 i = 0; i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].task.pid == (u32)pid)
			process = &snapshot->processes[i];
	assert_int_equal(process->nr_ranks, truth->nr_ranks);
	assert_int_equal(process->rank, truth->rank);
	assert_int_equal(process->nr_local_ranks, truth->nr_local_ranks);
	for (u32 op = 0; op < COLLECTIVE_NR; op++) {
		assert_int_equal(process->nr_collectives[op], truth->nr[op]);
		assert_int_equal(process->collective_bytes[op], truth->bytes[op]);
	}
	return process;
}

static void compare(void)
{
	struct kernel_snapshot snapshot;
	u64 identities[NR_TAGS] = {};

	assert_int_equal(kernel_snapshot_read(kernel, &snapshot), 0);
	for (u32 i = 0; i < nr_pids; i++) {
		const struct process_state *process =
			compare_process(&snapshot, pids[i], &shared->truth[i]);

		compare_comms(pids[i], process, &shared->truth[i], identities);
	}
	kernel_snapshot_done(&snapshot);
	/* All calls and their groups have ended. */
	assert_int_equal(kernel_nr_groups(kernel), 0);
}

static bool all_done(void)
{
	for (u32 i = 0; i < nr_pids; i++)
		if (!shared->truth[i].is_done)
			return false;
	return true;
}

static void start(child_fn fn, u32 nr, u64 seed)
{
	/* Otherwise each child would print the buffered output again. */
	fflush(stdout);
	memset(shared, 0, sizeof(*shared));
	shared->seed = seed;
	for (u32 i = 0; i < sizeof(shared->id) / sizeof(*shared->id); i++)
		assert_int_equal(ncclGetUniqueId(&shared->id[i]), ncclSuccess);
	for (nr_pids = 0; nr_pids < nr; nr_pids++)
		pids[nr_pids] = child_start(fn, (int)nr_pids);
}

/* Removes the children of a failed test. */
static int stop(void **state)
{
	for (; nr_pids > 0; nr_pids--) {
		kill(pids[nr_pids - 1], SIGKILL);
		waitpid(pids[nr_pids - 1], NULL, 0);
	}
	return 0;
}

/* Compares at each stage of the processes until they end; returns the number of stages. */
static u32 follow(void)
{
	struct kernel_drops drops;
	u32 stage = 1;

	for (;; stage++) {
		while (!all_done() && shared->truth[0].stage < stage) {
			for (u32 i = 0; i < nr_pids; i++)
				assert_true(shared->truth[i].is_done || !has_ended(pids[i]));
			usleep(1000);
		}
		if (all_done())
			break;
		await_stage(stage);
		compare();
		shared->nr_compared = stage;
	}
	for (; nr_pids > 0; nr_pids--)
		child_join(pids[nr_pids - 1]);
	drops = kernel_drops(kernel);
	assert_int_equal(drops.nr_comms, 0);
	assert_int_equal(drops.nr_frames, 0);
	assert_int_equal(drops.nr_processes, 0);
	return stage - 1;
}

static void test_ranks_and_counts_are_exact(void **state)
{
	struct random r = random_start();
	u64 nr, bytes;

	for (u32 s = 0; s < nr_scenarios; s++) {
		scenario = &scenarios[s];
		start(ranks_live, scenario->nr_processes, random_u64(&r));
		follow();
		nr = bytes = 0;
		for (u32 i = 0; i < scenario->nr_processes; i++)
			for (u32 op = 0; op < COLLECTIVE_NR; op++) {
				nr += shared->truth[i].nr[op];
				bytes += shared->truth[i].bytes[op];
			}
		print_message("# %s: %u stages equal; %llu operations, %llu bytes\n",
			      scenario->name, shared->nr_compared, nr, bytes);
	}
}

static void test_largest_communicator_is_the_world(void **state)
{
	start(ranks_in_a_smaller_world, NR_RANKS, 0);
	assert_int_equal(follow(), 4);
}

static void test_split_with_remote_ranks_is_unknown(void **state)
{
	start(ranks_split_half_seen, NR_RANKS, 0);
	assert_int_equal(follow(), 1);
}

static void test_split_of_unseen_communicator_is_unknown(void **state)
{
	kernel_detach_library(kernel, library);
	start(ranks_split_late, NR_RANKS, 0);
	await_stage(1);
	assert_int_equal(kernel_attach_library(kernel, library), 0);
	assert_int_equal(follow(), 2);
}

/* The record of the main thread of a process; its call is 0 if there is no such record. */
static struct thread_record read_thread(pid_t pid)
{
	struct thread_record record = {};
	struct kernel_snapshot snapshot;

	assert_int_equal(kernel_snapshot_read(kernel, &snapshot), 0);
	for (u32 i = 0; i < snapshot.nr_threads; i++)
		if (snapshot.threads[i].tid == (u32)pid)
			record = snapshot.threads[i];
	kernel_snapshot_done(&snapshot);
	return record;
}

/* Ranks 0 to 2 wait in a split; rank 0 is stopped there. The last rank is in no call. */
static void test_threads_show_their_call(void **state)
{
	struct thread_record record;
	siginfo_t info;

	start(ranks_never_return, NR_RANKS, 0);
	await_stage(1);
	for (u32 i = 0; i < NR_RANKS - 1; i++)
		while (!read_thread(pids[i]).call)
			usleep(1000);
	assert_int_equal(kill(pids[0], SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)pids[0], &info, WSTOPPED | WNOWAIT), 0);
	for (u32 i = 0; i < NR_RANKS; i++) {
		record = read_thread(pids[i]);
		assert_string_equal(record.call ? call_symbol(record.call - 1) : "",
				    i < NR_RANKS - 1 ? "ncclCommSplit" : "");
		assert_int_equal(record.doing == THREAD_STOPPED, i == 0);
		assert_true(!record.call || record.call_since_ns);
	}
	/* It waits for a signal. */
	assert_int_equal(record.doing, THREAD_SLEEPING);
}

/* Ranks 0 to 2 enter a split that the last rank never enters, and are killed in it. */
static void kill_ranks_in_a_split(void **state)
{
	start(ranks_never_return, NR_RANKS, 0);
	await_stage(1);
	while (!kernel_nr_groups(kernel))
		usleep(1000);
	usleep(200000);
	/* A sweep does not remove the state of a live process. */
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(kernel_nr_groups(kernel), 1);
	stop(state);
}

static void test_killed_ranks_are_removed(void **state)
{
	kill_ranks_in_a_split(state);
	assert_int_equal(kernel_nr_groups(kernel), 1);
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(kernel_nr_entries(kernel), 0);
}

static void test_killed_ranks_leave_no_entries(void **state)
{
	if (!getenv("ZERNEL_IN_GUEST")) {
		print_message("# skipped: watches every exit of the machine, so it only runs in a "
			      "guest\n");
		skip();
	}
	assert_int_equal(kernel_attach_threads(kernel), 0);
	kill_ranks_in_a_split(state);
	for (u32 i = 0; i < 5000 && kernel_nr_groups(kernel); i++)
		usleep(1000);
	assert_int_equal(kernel_nr_groups(kernel), 0);
}

/* Attaches to the library by its path, as if a process had mapped it. */
static int attach(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), runtime = library_runtime_of(path), err;

	library = calloc(1, sizeof(*library));
	if (fd < 0 || runtime < 0 || !library)
		return -ENOENT;
	library->fd = fd;
	library->runtime = (enum runtime)runtime;
	snprintf(library->path, sizeof(library->path), "/proc/self/fd/%d", fd);
	err = library_resolve(fd, library->runtime, false, &library->probes, &(u64){ 0 });
	return err < 0 ? err : kernel_attach_library(kernel, library);
}

/* A copy is another file, so it has no probes. */
static int copy_library(const char *path)
{
	CLEANUP_FD int from = open(path, O_RDONLY | O_CLOEXEC), to = -EBADF;
	char buffer[65536];
	ssize_t n;

	snprintf(unseen_path, sizeof(unseen_path), "/tmp/zernel-unseen-XXXXXX");
	to = mkstemp(unseen_path);
	if (from < 0 || to < 0)
		return -errno;
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)n) != n)
			return -EIO;
	unseen_library = unseen_path;
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_ranks_and_counts_are_exact, stop),
		cmocka_unit_test_teardown(test_largest_communicator_is_the_world, stop),
		cmocka_unit_test_teardown(test_split_with_remote_ranks_is_unknown, stop),
		cmocka_unit_test_teardown(test_split_of_unseen_communicator_is_unknown, stop),
		cmocka_unit_test_teardown(test_threads_show_their_call, stop),
		cmocka_unit_test_teardown(test_killed_ranks_are_removed, stop),
		cmocka_unit_test_teardown(test_killed_ranks_leave_no_entries, stop),
	};
	int err = kernel_new(log_libbpf, &kernel), result;

	if (err == -EPERM || err == -ENOSYS) {
		printf("1..0 # SKIP cannot load BPF programs into this kernel: %s\n",
		       strerror(-err));
		return 0;
	}
	harness_start("4", "1e9");
	/* An emulated guest on a busy machine takes minutes. */
	alarm(400);
	/* Large transfers then take little time. */
	setenv("VGPU_NCCL_BANDWIDTH", "1e18", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (err == 0)
		err = argc == 2 && shared != MAP_FAILED ? attach(argv[1]) : -EINVAL;
	if (err == 0)
		err = copy_library(argv[1]);
	if (err < 0) {
		fprintf(stderr, "Bail out! cannot prepare the test: %s\n", strerror(-err));
		return harness_end(EXIT_FAILURE);
	}
	result = cmocka_run_group_tests_name("comms", tests, NULL, NULL);
	unlink(unseen_path);
	kernel_free(kernel);
	free(library);
	return harness_end(result);
}
