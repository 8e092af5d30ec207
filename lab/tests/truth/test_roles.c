/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jobs whose roles are hard to find: each one's truth is consistent, has the expected
 * number of threads in each role, and says that tasks of the expected roles ended waits.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "idle.h"
#include "runs.h"

/* Where meson put the programs; cmocka hands no arguments to tests. */
static struct {
	const char *roles, *truth;
} programs;

#define NR_ROLES   (TRUTH_ROLE_FEEDER_PATH + 1)
#define STEPS	   10
#define MEMBERS	   "3"
#define LAUNCHER   (1U << TRUTH_ROLE_LAUNCHER)
#define LOADER	   (1U << TRUTH_ROLE_LOADER)
#define FEEDER	   (1U << TRUTH_ROLE_FEEDER_PATH)
#define TEXT_OF(x) #x
#define TEXT(x)	   TEXT_OF(x)

/* Threads by role: other, launcher, sync waiter, loader, collective helper, feeder path. */
static const struct expected {
	const char *job;
	u64 threads[NR_ROLES];
	unsigned int enders; /* roles that end waits of a launcher */
	unsigned int chain;  /* roles that may end waits of other tasks */
} table[] = {
	{ "autograd", { 0, 2, 0, 2, 0, 0 }, LAUNCHER | LOADER, 0 },
	{ "forkserver", { 1, 1, 0, 3, 0, 0 }, LOADER, LAUNCHER },
	{ "spawn", { 0, 1, 0, 3, 0, 0 }, LOADER, LAUNCHER },
	{ "nccl-progress", { 0, 2, 0, 2, 4, 0 }, LOADER, 0 },
	{ "offload", { 0, 1, 0, 2, 0, 3 }, LOADER | FEEDER, LAUNCHER },
	{ "engine-poll", { 0, 2, 0, 0, 0, 1 }, FEEDER, LAUNCHER },
	{ "multi-device", { 0, 2, 0, 2, 0, 0 }, LAUNCHER | LOADER, 0 },
	{ "chain", { 0, 1, 0, 5, 0, 0 }, LOADER, LAUNCHER | LOADER },
	{ "chain-socket", { 1, 1, 0, 5, 0, 0 }, LOADER, LAUNCHER | LOADER },
	{ "chain-shm", { 1, 1, 0, 5, 0, 0 }, LOADER, LAUNCHER | LOADER },
	{ "ckpt-fork", { 1, 1, 0, 2, 0, 0 }, LOADER, 0 },
	{ "rl", { 0, 1, 0, 3, 0, 0 }, LOADER, LAUNCHER },
};

static int role_of(const struct events *threads, u32 tid)
{
	for (u64 i = 0; i < threads->nr; i++)
		if (threads->all[i].rec.tid == tid)
			return threads->all[i].rec.sub;
	fail_msg("no thread %u", tid);
	return -1;
}

static void judge_threads(const struct expected *expected, const struct events *threads)
{
	u64 nr[NR_ROLES] = {};

	for (u64 i = 0; i < threads->nr; i++) {
		assert_true(threads->all[i].rec.sub < NR_ROLES);
		nr[threads->all[i].rec.sub]++;
	}
	for (size_t role = 0; role < NR_ROLES; role++)
		if (nr[role] != expected->threads[role])
			fail_msg("%s: %llu threads of role %zu", expected->job, nr[role], role);
}

static void judge_waits(const struct expected *expected, const struct events *threads,
			const struct events *waits)
{
	unsigned int enders = 0, chain = 0;

	for (u64 i = 0; i < waits->nr; i++) {
		int waiter = role_of(threads, waits->all[i].rec.tid);
		int ender = role_of(threads, (u32)waits->all[i].rec.a);

		if (waiter == TRUTH_ROLE_LAUNCHER)
			enders |= 1U << ender;
		else
			chain |= 1U << ender;
	}
	print_message("# %s: %llu waits\n", expected->job, waits->nr);
	if (enders != expected->enders || (chain & ~expected->chain))
		fail_msg("%s: roles %#x end waits of launchers, %#x those of other tasks",
			 expected->job, enders, chain);
}

/* The members compute for long, so that tasks wait for them, also on a busy machine. */
static void job_judge(const struct place *place, const struct expected *expected)
{
	struct events threads, waits, steps;
	struct truth_dir dir;

	assert_int_equal(RUN(place, (char *)programs.roles, (char *)expected->job, "--steps",
			     TEXT(STEPS), "--kernel-us", "50", "--members", MEMBERS, "--member-us",
			     "5000", "--load-cpu-us", "20000", "--truth", (char *)place->truth),
			 0);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);
	assert_int_equal(truth_dir_read(place->truth, &dir), 0);
	threads = events_of(&dir, TRUTH_THREAD);
	waits = events_of(&dir, TRUTH_WAIT);
	steps = events_of(&dir, TRUTH_STEP);
	judge_threads(expected, &threads);
	judge_waits(expected, &threads, &waits);
	assert_int_equal(steps.nr % STEPS, 0);
	assert_true(steps.nr > 0);
	free(threads.all);
	free(waits.all);
	free(steps.all);
	truth_dir_done(&dir);
	remove_all(place->truth);
}

static void test_roles_and_waits(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		job_judge(*state, &table[i]);
}

/* A team has its role from its first work on, and another one before. */
static void test_role_changes(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;
	struct events roles;

	assert_int_equal(RUN(place, (char *)programs.roles, "offload", "--steps", "2",
			     "--kernel-us", "50", "--members", "1", "--truth",
			     (char *)place->truth),
			 0);
	assert_int_equal(truth_dir_read(place->truth, &dir), 0);
	roles = events_of(&dir, TRUTH_ROLE);
	assert_int_equal(roles.nr, 2);
	assert_int_equal(roles.all[0].rec.sub, TRUTH_ROLE_OTHER);
	assert_int_equal(roles.all[1].rec.sub, TRUTH_ROLE_FEEDER_PATH);
	assert_int_equal(roles.all[0].rec.end_ns, roles.all[1].rec.start_ns);
	free(roles.all);
	truth_dir_done(&dir);
}

static void test_wrong_job(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.roles, "no-such-job"), 2);
	assert_int_equal(RUN(place, (char *)programs.roles, "chain", "--members", "17"), 2);
	assert_int_equal(RUN(place, (char *)programs.roles, "chain", "--members", "0"), 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACED(test_roles_and_waits),
		PLACED(test_role_changes),
		PLACED(test_wrong_job),
	};

	if (argc != 3)
		return 2;
	programs.roles = argv[1];
	programs.truth = argv[2];
	return cmocka_run_group_tests_name("roles", tests, NULL, NULL);
}
