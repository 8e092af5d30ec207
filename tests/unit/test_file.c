/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * base/file.h: reading of a file without a known size, of a part, and of text. Tests of saving are
 * in tests/procdb.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"

static char directory[] = "/tmp/test-file.XXXXXX";
static char path[64], absent[64];

static int make_directory(void **state)
{
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	snprintf(absent, sizeof(absent), "%s/absent", directory);
	return 0;
}

static int remove_directory(void **state)
{
	unlink(path);
	return rmdir(directory);
}

/* A pipe has no size. Until it is closed it returns EAGAIN, as a BPF iterator may do. */
static void test_read_without_a_size(void **state)
{
	enum { PIECE = 1 << 16, NR = 5 };
	CLEANUP_FREE char *sent = malloc(PIECE);
	CLEANUP_FREE void *data = NULL;
	size_t size = 0;
	int fds[2], status;
	pid_t pid;

	assert_non_null(sent);
	for (size_t i = 0; i < PIECE; i++)
		sent[i] = (char)i;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int wrong = close(fds[0]);

		for (int i = 0; i < NR; i++)
			wrong |= write(fds[1], sent, PIECE) != PIECE;
		_exit(wrong);
	}
	close(fds[1]);
	assert_int_equal(file_read_iterator(fds[0], &data, &size), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(size, (size_t)NR * PIECE);
	for (int i = 0; i < NR; i++)
		assert_memory_equal((char *)data + (size_t)i * PIECE, sent, PIECE);
}

static void test_read_part(void **state)
{
	char whole[16] = "................", part[16] = "................";
	int fd;

	assert_int_equal(file_save(&file_ops_system, path, "0123456789", 10, 0600), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_at(fd, 6, part, sizeof(part)), 4);
	assert_memory_equal(part, "6789....", 8);
	assert_int_equal(file_read_at(fd, 2, part, 3), 3);
	assert_memory_equal(part, "2349....", 8);
	/* Reads at an offset do not change the file position. */
	assert_int_equal(file_read_fd(fd, whole, sizeof(whole)), 10);
	assert_memory_equal(whole, "0123456789..", 12);
	assert_int_equal(file_read_fd(fd, whole, sizeof(whole)), 0);
	close(fd);
	assert_int_equal(file_read_fd(fd, whole, sizeof(whole)), -EBADF);
}

static void test_read_text(void **state)
{
	char text[8] = "before";

	assert_int_equal(file_read_text(absent, text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "before");
	assert_int_equal(file_read_text(directory, text, sizeof(text)), -EISDIR);
	assert_string_equal(text, "");
	assert_int_equal(file_save(&file_ops_system, path, "0123456789", 10, 0600), 0);
	assert_int_equal(file_read_text(path, text, sizeof(text)), 7);
	assert_string_equal(text, "0123456");
	assert_int_equal(file_save(&file_ops_system, path, "01", 2, 0600), 0);
	assert_int_equal(file_read_text(path, text, sizeof(text)), 2);
	assert_string_equal(text, "01");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_without_a_size),
		cmocka_unit_test(test_read_part),
		cmocka_unit_test(test_read_text),
	};

	return cmocka_run_group_tests_name("file", tests, make_directory, remove_directory);
}
