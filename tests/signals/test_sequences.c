/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which communicators have an entry in the table of collectives, the part of it that a user can
 * have, and the end of the entries. Tests that need to see every exit only run if ZERNEL_IN_GUEST
 * is set.
 */
#include "signals/native.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "signals/sequences.h"

#define CAP	3
#define NR_SIZE 2

static const char *sequences_lib;

static void on_event(void *ctx, const struct event *event)
{
}

static struct kernel *kernel_with_library(void)
{
	struct library library = native_library(sequences_lib, RUNTIME_NCCL, -1);
	struct kernel *kernel = native_kernel();

	assert_int_equal(kernel_open_events(kernel, false, on_event, NULL), 0);
	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	return kernel;
}

/* A process that makes communicators: as many as it is told, with one collective each. */
struct job {
	pid_t pid;
	int to, from;
};

static void reduce(void *comm)
{
	if (ncclAllReduce(NULL, NULL, 1, 7, 0, comm, NULL) != 0)
		_exit(1);
}

static void make(int from, int to, int nr_ranks)
{
	ncclUniqueId id = { .bytes = { 1 } };
	static void *comms[COMMS_MAX];
	u32 nr, at = 0;

	while (read(from, &nr, sizeof(nr)) == sizeof(nr)) {
		for (; nr > 0; nr--, at++) {
			id.bytes[1] = (char)at;
			if (ncclCommInitRank(&comms[at], nr_ranks, id, 0) != 0)
				_exit(1);
		}
		for (u32 i = 0; i < at; i++)
			reduce(comms[i]);
		if (write(to, &nr, sizeof(nr)) != sizeof(nr))
			_exit(1);
	}
	_exit(0);
}

static struct job job_start(uid_t uid, int nr_ranks)
{
	int to[2], from[2];
	pid_t pid;

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		close(to[1]);
		make(to[0], from[1], nr_ranks);
	}
	close(to[0]);
	close(from[1]);
	return (struct job){ pid, to[1], from[0] };
}

static void job_make(const struct job *job, u32 nr)
{
	assert_int_equal(write(job->to, &nr, sizeof(nr)), sizeof(nr));
	assert_int_equal(read(job->from, &nr, sizeof(nr)), sizeof(nr));
}

static void job_end(struct job *job)
{
	assert_int_equal(kill(job->pid, SIGKILL), 0);
	assert_int_equal(waitpid(job->pid, NULL, 0), job->pid);
	close(job->to);
	close(job->from);
}

/*
 * The number of entries of the process; each one has counted `nr_calls`. Another communicator with
 * an identity is marked.
 */
static u32 nr_sequences(struct kernel *kernel, pid_t pid, u64 nr_calls)
{
	struct process_state state = native_state(kernel, pid);
	struct comms comms;
	u32 nr = 0;

	assert_int_equal(kernel_read_comms(kernel, pid, &comms), 0);
	for (u32 i = 0; i < COMMS_MAX; i++) {
		struct sequence sequence;

		kernel_read_sequence(kernel, &state, &comms, i, &sequence);
		if (comms.comm[i].state == COMM_READY && comms.comm[i].identity)
			assert_int_equal(comms.comm[i].is_uncounted, !sequence.nr);
		if (!sequence.nr)
			continue;
		assert_int_equal(sequence.nr, nr_calls);
		nr++;
	}
	assert_int_equal(__builtin_popcountll(state.sequences), nr);
	return nr;
}

static u32 nr_identities(struct kernel *kernel, pid_t pid)
{
	struct comms comms;
	u32 nr = 0;

	assert_int_equal(kernel_read_comms(kernel, pid, &comms), 0);
	for (u32 i = 0; i < COMMS_MAX; i++)
		nr += comms.comm[i].state == COMM_READY && comms.comm[i].identity;
	return nr;
}

static void test_a_communicator_that_cannot_be_compared_has_no_entry(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_library();
	ncclUniqueId id = { .bytes = { 1 } };
	void *unseen = &unseen, *child, *world;

	/* Its parent was made before the probes were there: it has no size and no identity. */
	assert_int_equal(ncclCommSplit(unseen, 0, 0, &child, NULL), 0);
	reduce(child);
	assert_int_equal(nr_sequences(kernel, getpid(), 1), 0);
	assert_int_equal(ncclCommInitRank(&world, NR_SIZE, id, 0), 0);
	reduce(world);
	assert_int_equal(nr_sequences(kernel, getpid(), 1), 1);
	assert_int_equal(kernel_drops(kernel).nr_comms, 0);
}

static void test_a_user_is_capped(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_library();
	struct job greedy = job_start(1000, NR_SIZE), other = job_start(1001, NR_SIZE);
	struct job root = job_start(0, NR_SIZE);

	kernel->skel->data->tenant_max[TENANT_SEQUENCES] = CAP;
	job_make(&greedy, CAP + 2);
	assert_int_equal(nr_sequences(kernel, greedy.pid, 1), CAP);
	assert_int_equal(nr_identities(kernel, greedy.pid), CAP + 2);
	assert_int_equal(kernel_drops(kernel).nr_comms, 2);
	job_make(&other, CAP);
	assert_int_equal(nr_sequences(kernel, other.pid, 1), CAP);
	job_make(&root, COMMS_MAX);
	assert_int_equal(nr_sequences(kernel, root.pid, 1), COMMS_MAX);
	/* A sweep finds the same counts, and the end of a process makes room. */
	assert_int_equal(kernel_sweep(kernel), 0);
	job_make(&greedy, 1);
	assert_int_equal(nr_sequences(kernel, greedy.pid, 2), CAP);
	job_end(&greedy);
	assert_int_equal(kernel_sweep(kernel), 0);
	greedy = job_start(1000, NR_SIZE);
	job_make(&greedy, CAP);
	assert_int_equal(nr_sequences(kernel, greedy.pid, 1), CAP);
	job_end(&greedy);
	job_end(&other);
	job_end(&root);
}

/* Their size is 0, so that the process has no rank. */
static void test_the_end_of_a_process_deletes_its_entries(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = NULL;
	struct job job;

	if (!getenv("ZERNEL_IN_GUEST")) {
		print_message("# skipped: watches every exit of the machine, so it only runs in a "
			      "guest\n");
		skip();
	}
	kernel = kernel_with_library();
	kernel->skel->data->tenant_max[TENANT_SEQUENCES] = COMMS_MAX;
	assert_int_equal(kernel_attach_threads(kernel), 0);
	for (u32 i = 0; i < 2; i++) {
		job = job_start(1000, 0);
		job_make(&job, COMMS_MAX);
		assert_int_equal(nr_sequences(kernel, job.pid, 1), COMMS_MAX);
		assert_int_equal(kernel_nr_entries(kernel), COMMS_MAX);
		job_end(&job);
		assert_true(kernel_read_events(kernel) >= 0);
		assert_int_equal(kernel_nr_entries(kernel), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_communicator_that_cannot_be_compared_has_no_entry),
		cmocka_unit_test(test_a_user_is_capped),
		cmocka_unit_test(test_the_end_of_a_process_deletes_its_entries),
	};

	if (argc != 2)
		return 2;
	sequences_lib = argv[1];
	return cmocka_run_group_tests_name("sequences", tests, NULL, NULL);
}
