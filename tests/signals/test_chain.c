/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes of a user wake each other and a launcher: how far the role `critical` reaches, and
 * what a wakeup costs. Runs in a guest in virtual time, because wakeups can be followed only for
 * the whole machine, and because the time of a program then is its number of instructions. The
 * guest has one CPU: the emulator runs several in turn, and a turn of another CPU would count.
 */
#include "signals/native.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>

#define MEMBERS_MAX	   1000
#define FEW		   20
#define NS_PER_INSTRUCTION 4
#define ROUNDS		   40
#define LAPS		   4
#define MEMBER_NS	   (200 * NSEC_PER_USEC)
/* A wakeup that finds a role needs about half of it. */
#define INSTRUCTIONS_MAX   4000
#define COST_GROWS_MAX	   1.2
#define SERVICE_CGROUP	   "/sys/fs/cgroup/service"

int runtime_launch(u64 ns);

static const char *launches_lib;
static u32 nr_members; /* of the large chain */

/* A process that reads a byte and then writes one to each of its outputs. */
struct member {
	uid_t uid;
	const char *cgroup; /* NULL: the root cgroup */
	u32 nr_outs;
	u32 outs[2];
	int pipe[2];
	pid_t pid;
};

struct chain {
	struct kernel *kernel;
	u32 nr;
	int done[2];				/* a byte from the launcher after each launch */
	struct member members[MEMBERS_MAX + 1]; /* the first one is the launcher */
};

static void member_join(const struct member *member)
{
	FILE *file = member->cgroup ? fopen(member->cgroup, "we") : NULL;

	if (member->cgroup && (!file || fprintf(file, "0\n") < 0 || fclose(file) < 0))
		_exit(2);
	if (setresuid(member->uid, member->uid, member->uid) < 0)
		_exit(2);
}

static void launcher_run(const struct chain *chain)
{
	char byte = 0;

	do
		runtime_launch(1000);
	while (write(chain->done[1], &byte, 1) == 1 &&
	       read(chain->members[0].pipe[0], &byte, 1) == 1);
}

/* The launcher sleeps again before the next member wakes it. */
static void member_works(void)
{
	u64 end = time_now_ns() + MEMBER_NS;

	while (time_now_ns() < end)
		;
}

static void member_run(const struct chain *chain, const struct member *member)
{
	char byte = 0;

	while (read(member->pipe[0], &byte, 1) == 1) {
		member_works();
		for (u32 i = 0; i < member->nr_outs; i++)
			if (write(chain->members[member->outs[i]].pipe[1], &byte, 1) != 1)
				return;
	}
}

/* Adds a member that wakes the members `out` and `other_out`. */
static struct member *member_add(struct chain *chain, u32 out, u32 other_out)
{
	struct member *member = &chain->members[chain->nr++];

	*member = (struct member){ .uid = 1000,
				   .nr_outs = 1 + (out != other_out),
				   .outs = { out, other_out } };
	return member;
}

/* The programs are loaded once, which takes long on an emulated CPU. */
static struct kernel *kernel_loaded(void)
{
	static struct kernel *kernel;
	struct library library;

	if (kernel)
		return kernel;
	kernel = native_kernel();
	library = native_library(launches_lib, RUNTIME_CUDA, -1);
	assert_int_equal(kernel_attach_threads(kernel), 0);
	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	return kernel;
}

static struct chain *chain_new(void)
{
	static struct chain chain;

	chain = (struct chain){ .kernel = kernel_loaded(), .nr = 1 };
	chain.members[0] = (struct member){ .uid = 1000 };
	return &chain;
}

static void wait_for_launch(const struct chain *chain)
{
	char byte;

	assert_int_equal(read(chain->done[0], &byte, 1), 1);
}

static void chain_start(struct chain *chain)
{
	assert_int_equal(pipe2(chain->done, O_CLOEXEC), 0);
	for (u32 i = 0; i < chain->nr; i++)
		assert_int_equal(pipe2(chain->members[i].pipe, O_CLOEXEC), 0);
	for (u32 i = 0; i < chain->nr; i++) {
		struct member *member = &chain->members[i];

		member->pid = fork();
		assert_true(member->pid >= 0);
		if (member->pid == 0) {
			member_join(member);
			i == 0 ? launcher_run(chain) : member_run(chain, member);
			_exit(1);
		}
	}
	wait_for_launch(chain);
}

static void wake(const struct chain *chain, u32 index)
{
	assert_int_equal(write(chain->members[index].pipe[1], "", 1), 1);
}

static void chain_end(struct chain *chain)
{
	for (u32 i = 0; i < chain->nr; i++)
		assert_int_equal(kill(chain->members[i].pid, SIGKILL), 0);
	for (u32 i = 0; i < chain->nr; i++) {
		assert_int_equal(waitpid(chain->members[i].pid, NULL, 0), chain->members[i].pid);
		close(chain->members[i].pipe[0]);
		close(chain->members[i].pipe[1]);
	}
	close(chain->done[0]);
	close(chain->done[1]);
}

/* The role of the task, which is the first member of its state; ROLE_NR: it has no state. */
static u32 role_of(const struct chain *chain, u32 index)
{
	const struct bpf_map *map = chain->kernel->skel->maps.threads;
	u32 words[bpf_map__value_size(map) / sizeof(u32)];
	int fd = (int)syscall(SYS_pidfd_open, chain->members[index].pid, 0), err;

	assert_true(fd >= 0);
	err = bpf_map__lookup_elem(map, &fd, sizeof(fd), words, sizeof(words), 0);
	close(fd);
	return err ? ROLE_NR : words[0];
}

static void test_a_chain_is_followed_for_four_wakeups(void **state)
{
	const u32 length = 10, reach = 4;
	struct chain *chain = chain_new();

	for (u32 i = 1; i <= length; i++)
		member_add(chain, i - 1, i - 1);
	chain_start(chain);
	for (u32 i = 0; i < ROUNDS; i++) {
		wake(chain, length);
		wait_for_launch(chain);
	}
	assert_int_equal(role_of(chain, 0), ROLE_LAUNCHER);
	for (u32 i = 1; i <= length; i++)
		assert_int_equal(role_of(chain, i), i <= reach ? ROLE_CRITICAL : ROLE_NR);
	chain_end(chain);
}

/* Launcher <- own <- service <- behind, and the service also wakes the launcher. */
static void check_service(uid_t uid, const char *cgroup)
{
	struct chain *chain = chain_new();
	struct member *service;

	member_add(chain, 0, 0);
	service = member_add(chain, 1, 0);
	service->uid = uid;
	service->cgroup = cgroup;
	member_add(chain, 2, 2);
	chain_start(chain);
	for (u32 i = 0; i < ROUNDS; i++) {
		wake(chain, 3);
		wait_for_launch(chain);
		wait_for_launch(chain);
	}
	assert_int_equal(role_of(chain, 1), ROLE_CRITICAL);
	assert_int_equal(role_of(chain, 2), ROLE_NR);
	assert_int_equal(role_of(chain, 3), ROLE_NR);
	chain_end(chain);
}

static void test_a_service_of_another_user_gets_no_role(void **state)
{
	check_service(1001, NULL);
	check_service(0, NULL);
}

static void test_a_service_in_another_cgroup_gets_no_role(void **state)
{
	assert_int_equal(mkdir(SERVICE_CGROUP, 0755), 0);
	check_service(1000, SERVICE_CGROUP "/cgroup.procs");
	assert_int_equal(rmdir(SERVICE_CGROUP), 0);
}

static struct bpf_prog_info runs_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	u32 bytes = sizeof(info);

	assert_int_equal(bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &bytes), 0);
	return info;
}

/* Each member wakes the next one and the launcher. Returns the instructions of a wakeup. */
static double ring_cost(u32 nr)
{
	struct chain *chain = chain_new();
	const struct bpf_program *program = chain->kernel->skel->progs.thread_waking;
	struct bpf_prog_info before, after;
	u32 nr_critical = 0, nr_launches = LAPS * nr;
	struct kernel_drops drops;
	double cost;
	int stats;

	for (u32 i = 1; i <= nr; i++)
		member_add(chain, i % nr + 1, 0);
	chain_start(chain);
	assert_int_equal(kernel_measure_run_time(&stats), 0);
	before = runs_of(program);
	wake(chain, 1);
	while (nr_launches-- > 0)
		wait_for_launch(chain);
	after = runs_of(program);
	close(stats);
	for (u32 i = 1; i <= nr; i++)
		nr_critical += role_of(chain, i) == ROLE_CRITICAL;
	drops = kernel_drops(chain->kernel);
	cost = (double)(after.run_time_ns - before.run_time_ns) /
	       (double)(after.run_cnt - before.run_cnt) / NS_PER_INSTRUCTION;
	print_message("# %4u processes: %.0f instructions for each of %llu wakeups, %u critical; "
		      "dropped: %llu processes, %llu program runs\n",
		      nr, cost, after.run_cnt - before.run_cnt, nr_critical, drops.nr_processes,
		      drops.nr_bpf_program_runs);
	assert_true(nr_critical > nr / 2);
	chain_end(chain);
	return cost;
}

static void test_the_cost_of_a_wakeup_is_bounded(void **state)
{
	double few = ring_cost(FEW), many = ring_cost(nr_members);

	assert_true(many < INSTRUCTIONS_MAX);
	assert_true(many < COST_GROWS_MAX * few);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_chain_is_followed_for_four_wakeups),
		cmocka_unit_test(test_a_service_of_another_user_gets_no_role),
		cmocka_unit_test(test_a_service_in_another_cgroup_gets_no_role),
		cmocka_unit_test(test_the_cost_of_a_wakeup_is_bounded),
	};
	const struct rlimit files = { 4 * MEMBERS_MAX, 4 * MEMBERS_MAX };

	if (argc != 3)
		return 2;
	launches_lib = argv[1];
	nr_members = (u32)atoi(argv[2]);
	if (nr_members <= FEW || nr_members > MEMBERS_MAX || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return 2;
	return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
