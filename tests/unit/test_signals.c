/* SPDX-License-Identifier: GPL-2.0-or-later */

/* base/signals.h. Each test blocks signals in its own child process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/macros.h"
#include "base/signals.h"

/* The exit status is the line of the failed check, so that the parent can report it. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 255 + 1);                                                 \
	} while (0)

/* Runs a function in a child. Returns its status from waitpid(). */
static int in_child(void (*run)(void))
{
	pid_t pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void read_those_that_end(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	int fd;

	REQUIRE(signals_open(NULL, &fd, NULL) == 0);
	REQUIRE(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	REQUIRE(signals_next(fd) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		raise(numbers[i]);
		REQUIRE(signals_next(fd) == numbers[i]);
		REQUIRE(signals_next(fd) == 0);
	}
}

static void read_another(void)
{
	static const int also[] = { SIGCHLD, SIGQUIT, 0 };
	int fd;

	REQUIRE(signals_open(also, &fd, NULL) == 0);
	raise(SIGQUIT);
	raise(SIGCHLD);
	REQUIRE(signals_next(fd) != 0);
	REQUIRE(signals_next(fd) != 0);
	REQUIRE(signals_next(fd) == 0);
	raise(SIGTERM);
	REQUIRE(signals_next(fd) == SIGTERM);
}

static void be_ended_by_another(void)
{
	int fd;

	/* A shell without job control starts its background programs with SIGQUIT ignored. */
	signal(SIGQUIT, SIG_DFL);
	REQUIRE(signals_open(NULL, &fd, NULL) == 0);
	raise(SIGQUIT);
}

static void test_signals_are_read(void **state)
{
	int status;

	assert_int_equal(in_child(read_those_that_end), 0);
	assert_int_equal(in_child(read_another), 0);
	status = in_child(be_ended_by_another);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGQUIT);
}

/* Signals that the caller had blocked before stay blocked. */
static void restore(void)
{
	sigset_t mine, former, now;
	int fd;

	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mine, NULL);
	REQUIRE(signals_open(NULL, &fd, &former) == 0);
	signals_restore(&former);
	sigprocmask(SIG_SETMASK, NULL, &now);
	REQUIRE(sigismember(&now, SIGUSR1) == 1);
	REQUIRE(sigismember(&now, SIGHUP) == 0);
	raise(SIGTERM);
}

static void test_signals_work_again_after_restore(void **state)
{
	int status = in_child(restore);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void *note_mask(void *ctx)
{
	pthread_sigmask(SIG_SETMASK, NULL, ctx);
	return NULL;
}

static void test_a_thread_gets_no_signals(void **state)
{
	sigset_t before, in_thread, after;
	pthread_t thread;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(signals_start_thread(note_mask, &in_thread, &thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < 32; number++) {
		if (number != SIGKILL && number != SIGSTOP)
			assert_int_equal(sigismember(&in_thread, number), 1);
		assert_int_equal(sigismember(&after, number), sigismember(&before, number));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_are_read),
		cmocka_unit_test(test_signals_work_again_after_restore),
		cmocka_unit_test(test_a_thread_gets_no_signals),
	};

	return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
