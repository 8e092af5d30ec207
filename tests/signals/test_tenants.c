/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The caps on the followed processes of a user and of a group, and on their memory. Runs in a
 * guest, because the ends of processes can be followed only for the whole machine, and because it
 * makes cgroups.
 */
#include "signals/native.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAP	3
#define CGROUPS "/sys/fs/cgroup"

#define BYTES 4096

int runtime_launch(u64 ns);
int cudaHostRegister(void *memory, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *memory);

static const char *launches_lib;

static void join_cgroup(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file || fprintf(file, "0\n") < 0 || fclose(file) < 0)
		_exit(2);
}

/* Starts a process that has made a call. `cgroup` is NULL for the root cgroup. */
static pid_t start(uid_t uid, const char *cgroup)
{
	int called[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(called, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (cgroup)
			join_cgroup(cgroup);
		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		runtime_launch(1000);
		if (write(called[1], &byte, 1) != 1)
			_exit(1);
		pause();
	}
	close(called[1]);
	assert_int_equal(read(called[0], &byte, 1), 1);
	close(called[0]);
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool followed(struct kernel *kernel, pid_t pid)
{
	return native_state(kernel, pid).task.pid == (u32)pid;
}

static struct kernel *kernel_with_cap(void)
{
	struct library library = native_library(launches_lib, RUNTIME_CUDA, -1);
	struct kernel *kernel = native_kernel();

	kernel->skel->data->tenant_max[TENANT_PROCESSES] = CAP;
	assert_int_equal(kernel_attach_threads(kernel), 0);
	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	return kernel;
}

/* Uses up the room of one tenant; another has room. The end of a process makes room again. */
static void check_cap(uid_t uid, const char *cgroup, uid_t other_uid, const char *other_cgroup)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_cap();
	pid_t children[CAP], child;

	for (u32 i = 0; i < CAP; i++) {
		children[i] = start(uid, cgroup);
		assert_true(followed(kernel, children[i]));
	}
	assert_int_equal(kernel_drops(kernel).nr_processes, 0);
	child = start(uid, cgroup);
	assert_false(followed(kernel, child));
	assert_true(kernel_drops(kernel).nr_processes > 0);
	stop(child);
	child = start(other_uid, other_cgroup);
	assert_true(followed(kernel, child));
	stop(child);
	stop(children[0]);
	children[0] = start(uid, cgroup);
	assert_true(followed(kernel, children[0]));
	/* The sweep finds the same counts. */
	assert_int_equal(kernel_sweep(kernel), 0);
	child = start(uid, cgroup);
	assert_false(followed(kernel, child));
	stop(child);
	for (u32 i = 0; i < CAP; i++)
		stop(children[i]);
	assert_int_equal(kernel_sweep(kernel), 0);
	child = start(uid, cgroup);
	assert_true(followed(kernel, child));
	stop(child);
}

static void test_a_user_is_capped(void **state)
{
	check_cap(1000, NULL, 1001, NULL);
}

static void test_root_is_not_capped(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_cap();
	pid_t children[CAP + 1];

	for (u32 i = 0; i <= CAP; i++) {
		children[i] = start(0, NULL);
		assert_true(followed(kernel, children[i]));
	}
	for (u32 i = 0; i <= CAP; i++)
		stop(children[i]);
}

/* The two cgroups differ at the third level; what is below belongs to the same group. */
static void test_a_group_is_capped(void **state)
{
	static const char *const folders[] = { "/a", "/a/b", "/a/b/pod1", "/a/b/pod1/c",
					       "/a/b/pod2" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), CGROUPS "%s", folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	check_cap(0, CGROUPS "/a/b/pod1/c/cgroup.procs", 0, CGROUPS "/a/b/pod2/cgroup.procs");
}

/* A process that allocates and frees as it is told through a pipe: a number of allocations each. */
struct allocator {
	pid_t pid;
	int to, from;
};

static void allocate(int from, int to)
{
	s32 nr, at = 0;

	while (read(from, &nr, sizeof(nr)) == sizeof(nr)) {
		for (; nr > 0; nr--)
			cudaHostRegister((void *)(uintptr_t)(++at * BYTES), BYTES, 0);
		for (; nr < 0; nr++)
			cudaHostUnregister((void *)(uintptr_t)(at-- * BYTES));
		if (write(to, &nr, sizeof(nr)) != sizeof(nr))
			_exit(1);
	}
	_exit(0);
}

static struct allocator allocator_start(uid_t uid)
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
		allocate(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	return (struct allocator){ pid, to[1], from[0] };
}

static void allocator_do(const struct allocator *allocator, s32 nr)
{
	assert_int_equal(write(allocator->to, &nr, sizeof(nr)), sizeof(nr));
	assert_int_equal(read(allocator->from, &nr, sizeof(nr)), sizeof(nr));
}

static void allocator_end(struct allocator *allocator)
{
	stop(allocator->pid);
	close(allocator->to);
	close(allocator->from);
}

/* The number of allocations of the process that are in the table. */
static s64 nr_held(struct kernel *kernel, const struct allocator *allocator)
{
	struct process_state state = native_state(kernel, allocator->pid);
	const struct memory_book *book = &state.host_books[LEVEL_RUNTIME];

	return (s64)(book->nr_allocs - book->nr_frees);
}

struct quotas {
	u32 nr;
	u32 uid; /* of the last one */
	u64 nr_memory;
};

static void note_quota(void *ctx, u32 uid, const u64 nr_refused[TENANT_TABLE_NR])
{
	struct quotas *quotas = ctx;

	*quotas = (struct quotas){ quotas->nr + 1, uid, nr_refused[TENANT_MEMORY] };
}

static void test_memory_of_a_user_is_capped(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = kernel_with_cap();
	struct allocator greedy = allocator_start(1000), other = allocator_start(1001);
	struct allocator root = allocator_start(0);
	struct quotas quotas = {};

	kernel->skel->data->tenant_max[TENANT_MEMORY] = CAP;
	allocator_do(&greedy, CAP + 2);
	assert_int_equal(nr_held(kernel, &greedy), CAP);
	/* The excess counts against this user and no other. */
	allocator_do(&other, CAP);
	assert_int_equal(nr_held(kernel, &other), CAP);
	allocator_do(&root, 2 * CAP);
	assert_int_equal(nr_held(kernel, &root), 2 * CAP);
	kernel_read_quotas(kernel, note_quota, &quotas);
	assert_int_equal(quotas.nr, 1);
	assert_int_equal(quotas.uid, 1000);
	assert_int_equal(quotas.nr_memory, 2);
	/* What is freed can be used again. The first 2 frees are of what was refused. */
	allocator_do(&greedy, -4);
	assert_int_equal(nr_held(kernel, &greedy), CAP - 2);
	allocator_do(&greedy, 2);
	assert_int_equal(nr_held(kernel, &greedy), CAP);
	/* A sweep finds the same counts, and the end of a process makes room. */
	assert_int_equal(kernel_sweep(kernel), 0);
	allocator_do(&greedy, 1);
	assert_int_equal(nr_held(kernel, &greedy), CAP);
	allocator_end(&greedy);
	assert_int_equal(kernel_sweep(kernel), 0);
	greedy = allocator_start(1000);
	allocator_do(&greedy, CAP);
	assert_int_equal(nr_held(kernel, &greedy), CAP);
	allocator_end(&greedy);
	allocator_end(&other);
	allocator_end(&root);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_is_capped),
		cmocka_unit_test(test_root_is_not_capped),
		cmocka_unit_test(test_a_group_is_capped),
		cmocka_unit_test(test_memory_of_a_user_is_capped),
	};

	if (argc != 2)
		return 2;
	launches_lib = argv[1];
	return cmocka_run_group_tests_name("tenants", tests, NULL, NULL);
}
