/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests starter.c with the real zernel-discover, which is asked for the owner of this process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/socket.h"
#include "collect/library_message.h"
#include "daemon/starter.h"

static struct starter *starter;

static int setup(void **state)
{
	return starter_new(&starter);
}

static int teardown(void **state)
{
	starter = starter_free(starter);
	return 0;
}

/* Waits: the test has a timeout of its own. */
static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static bool answers(int fd)
{
	struct scan_request request = { .nr = 1,
					.rows = { { .pid = getpid(), .kind = SCAN_OWNER } } };
	struct scan_message message = {};

	if (socket_send(fd, 0, &request, sizeof(request), -1) < 0 || !is_readable(fd, -1))
		return false;
	return socket_receive(fd, 0, &message, sizeof(message), NULL) > 0 &&
	       message.kind == SCAN_OWNED && message.owned.pid == getpid() &&
	       message.owned.owner.uid == getuid();
}

static bool has_ended(int fd)
{
	char byte;

	return is_readable(fd, -1) && socket_receive(fd, 0, &byte, 1, NULL) <= 0;
}

static void test_a_program_is_started_and_killed(void **state)
{
	int fd = -EBADF;

	assert_int_equal(starter_start(starter, PROGRAM_LIBRARIES, &fd), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(answers(fd));
	starter_kill(starter, PROGRAM_LIBRARIES);
	assert_true(has_ended(fd));
	close(fd);
}

static void test_a_second_start_ends_the_first_program(void **state)
{
	int first = -EBADF, second = -EBADF;

	assert_int_equal(starter_start(starter, PROGRAM_LIBRARIES, &first), 0);
	assert_true(answers(first));
	assert_int_equal(starter_start(starter, PROGRAM_LIBRARIES, &second), 0);
	assert_true(has_ended(first));
	assert_true(answers(second));
	close(first);
	close(second);
}

static pid_t pid_of_starter(void)
{
	char path[64], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	return atoi(line);
}

static void test_the_end_of_the_process_is_seen(void **state)
{
	int fd = -EBADF;

	assert_int_equal(starter_start(starter, PROGRAM_LIBRARIES, &fd), 0);
	assert_true(answers(fd));
	assert_false(is_readable(starter_fd(starter), 0));
	assert_int_equal(kill(pid_of_starter(), SIGKILL), 0);
	assert_true(is_readable(starter_fd(starter), -1));
	close(fd);
	assert_true(starter_start(starter, PROGRAM_LIBRARIES, &fd) < 0);
}

/* The socket is open still: a program that hangs would not see its end. */
static void test_programs_are_killed_at_the_end(void **state)
{
	int fd = -EBADF;

	assert_int_equal(starter_start(starter, PROGRAM_LIBRARIES, &fd), 0);
	assert_true(answers(fd));
	starter = starter_free(starter);
	assert_true(has_ended(fd));
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_program_is_started_and_killed),
		TEST(test_a_second_start_ends_the_first_program),
		TEST(test_the_end_of_the_process_is_seen),
		TEST(test_programs_are_killed_at_the_end),
	};

	return cmocka_run_group_tests_name("starter", tests, NULL, NULL);
}
