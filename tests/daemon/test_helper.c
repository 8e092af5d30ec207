/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests helper.c with a process that the test plays. */
#include <string.h>
#include "fake_helper.h"

#include "base/time.h"
#include "daemon/helper.h"

#define PROGRAM	  PROGRAM_GPU
#define FIRST_NS  (60 * NSEC_PER_SEC)
#define ANSWER_NS (5 * NSEC_PER_SEC)

static struct {
	int result; /* of the next answers */
	u32 nr_answers, nr_idle, nr_fails;
	int remain, gone;	     /* the last ones */
	enum helper_failure failure; /* the last one */
	bool had_fd;
} told;

static int on_answer(void *ctx, const void *message, size_t size, int fd)
{
	told.nr_answers++;
	told.had_fd = fd >= 0;
	return told.result;
}

static void on_idle(void *ctx)
{
	told.nr_idle++;
}

static void on_fail(void *ctx, enum helper_failure failure, int remain)
{
	told.nr_fails++;
	told.remain = remain;
	told.failure = failure;
}

static void on_gone(void *ctx, int remain)
{
	told.gone = remain;
}

static const struct helper_ops ops = { .message_bytes = 8,
				       .first_ns = FIRST_NS,
				       .answer_ns = ANSWER_NS,
				       .on_answer = on_answer,
				       .on_idle = on_idle,
				       .max_remains = 2,
				       .on_fail = on_fail,
				       .on_gone = on_gone };
static struct helper helper;

static int setup(void **state)
{
	memset(&told, 0, sizeof(told));
	processes_reset();
	return helper_init(&helper, NO_STARTER, NO_LOOP, PROGRAM, "test", &ops, NULL);
}

static int teardown(void **state)
{
	helper_done(&helper);
	return 0;
}

static void start(void)
{
	helper_tick(&helper, helper.start_ns);
	assert_true(helper_is_idle(&helper));
}

static void ask(u64 now_ns)
{
	u32 request = 0;

	helper_ask(&helper, "word", 4, now_ns);
	assert_int_equal(process_receive(PROGRAM, &request, sizeof(request)), 4);
	assert_false(helper_is_idle(&helper));
}

static void test_answers(void **state)
{
	assert_false(helper_is_idle(&helper));
	start();
	assert_int_equal(processes[PROGRAM].nr_starts, 1);
	ask(0);
	told.result = 1; /* more messages follow */
	process_send(PROGRAM, "a", 1, STDIN_FILENO);
	assert_true(told.had_fd);
	assert_false(helper_is_idle(&helper));
	assert_int_equal(told.nr_idle, 0);
	told.result = 0;
	process_send(PROGRAM, "a", 1, -1);
	assert_false(told.had_fd);
	assert_true(helper_is_idle(&helper));
	assert_int_equal(told.nr_idle, 1);
	assert_int_equal(told.nr_answers, 2);
	assert_int_equal(helper.nr_restarts, 0);
}

static void test_an_answer_to_no_request_ends_the_process(void **state)
{
	start();
	process_send(PROGRAM, "a", 1, -1);
	assert_int_equal(told.nr_answers, 0);
	assert_int_equal(told.nr_fails, 1);
	assert_int_equal(told.failure, HELPER_LEFT);
	assert_int_equal(processes[PROGRAM].nr_kills, 1);
}

static void test_an_invalid_answer_ends_the_process(void **state)
{
	start();
	ask(0);
	told.result = -EBADMSG;
	process_send(PROGRAM, "a", 1, -1);
	assert_int_equal(told.failure, HELPER_ENDED);
	assert_int_equal(processes[PROGRAM].nr_kills, 1);
	start();
	assert_int_equal(helper.nr_restarts, 1);
}

static void test_a_message_that_is_too_large_ends_the_process(void **state)
{
	start();
	ask(0);
	process_send(PROGRAM, "123456789", 9, -1);
	assert_int_equal(told.nr_answers, 0);
	assert_int_equal(told.failure, HELPER_ENDED);
}

static void test_a_process_that_ends_is_started_again(void **state)
{
	start();
	ask(0);
	process_end(PROGRAM);
	assert_int_equal(told.failure, HELPER_ENDED);
	helper_tick(&helper, helper.start_ns - 1);
	assert_int_equal(processes[PROGRAM].nr_starts, 1);
	start();
	assert_int_equal(processes[PROGRAM].nr_starts, 2);
	assert_int_equal(helper.nr_restarts, 1);
}

static void test_a_process_that_does_not_answer_is_killed(void **state)
{
	u64 now_ns = time_now_ns();

	start();
	ask(now_ns);
	helper_tick(&helper, now_ns + FIRST_NS - 1);
	assert_int_equal(told.nr_fails, 0);
	process_send(PROGRAM, "a", 1, -1);
	ask(now_ns);
	/* Less patience than for the first answer. */
	helper_tick(&helper, now_ns + ANSWER_NS - 1);
	assert_int_equal(told.nr_fails, 0);
	helper_tick(&helper, now_ns + ANSWER_NS);
	assert_int_equal(told.failure, HELPER_HUNG);
	assert_int_equal(told.remain, 0);
	assert_int_equal(processes[PROGRAM].nr_kills, 1);
	/* An idle process is left alone. */
	start();
	helper_tick(&helper, now_ns + 1000 * FIRST_NS);
	assert_int_equal(told.nr_fails, 1);
}

/* Returns the test's end of its socket. */
static int hang(void)
{
	u64 now_ns = time_now_ns();
	int fd;

	start();
	ask(now_ns);
	fd = processes[PROGRAM].fd;
	helper_tick(&helper, now_ns + FIRST_NS);
	assert_int_equal(told.failure, HELPER_HUNG);
	return fd;
}

/* Killed, yet waiting in the kernel for a driver. */
static void test_processes_that_cannot_be_killed_do_not_pile_up(void **state)
{
	int first, second;

	told.gone = HELPER_NONE;
	processes[PROGRAM].is_stuck = true;
	first = hang();
	assert_int_equal(told.remain, 0);
	/* The pause does not grow: other users wait for the next process. */
	second = hang();
	assert_true(helper.start_ns <= time_now_ns() + NSEC_PER_SEC);
	assert_int_equal(told.remain, 1);
	helper_tick(&helper, helper.start_ns);
	assert_int_equal(processes[PROGRAM].nr_starts, 2);
	assert_int_equal(told.gone, HELPER_NONE);
	close(second);
	start();
	assert_int_equal(told.gone, 1);
	assert_int_equal(processes[PROGRAM].nr_starts, 3);
	close(first);
}

static void test_pauses_grow(void **state)
{
	u64 pause_ns = NSEC_PER_SEC;

	processes[PROGRAM].error = -EMFILE;
	for (u32 i = 0; i < 9; i++) {
		u64 before_ns = time_now_ns();

		helper.started_ns = before_ns;
		helper_tick(&helper, before_ns);
		assert_true(helper.start_ns >= before_ns + pause_ns);
		assert_int_equal(told.failure, HELPER_LEFT);
		helper.start_ns = before_ns; /* the pause is over */
		pause_ns = pause_ns < 64 * NSEC_PER_SEC ? 2 * pause_ns : pause_ns;
	}
	assert_int_equal(told.nr_fails, 9);
	assert_int_equal(helper.backoff_ns, 64 * NSEC_PER_SEC);
	/* A process that lived for a minute begins with the shortest pause again. */
	processes[PROGRAM].error = 0;
	start();
	helper.started_ns = time_now_ns() - 60 * NSEC_PER_SEC;
	process_end(PROGRAM);
	assert_int_equal(helper.backoff_ns, 2 * NSEC_PER_SEC);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers),
		TEST(test_an_answer_to_no_request_ends_the_process),
		TEST(test_an_invalid_answer_ends_the_process),
		TEST(test_a_message_that_is_too_large_ends_the_process),
		TEST(test_a_process_that_ends_is_started_again),
		TEST(test_a_process_that_does_not_answer_is_killed),
		TEST(test_processes_that_cannot_be_killed_do_not_pile_up),
		TEST(test_pauses_grow),
	};

	return cmocka_run_group_tests_name("helper", tests, NULL, NULL);
}
