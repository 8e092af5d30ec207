/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests Unix sockets, the line buffer and base64. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/socket.h"

static char directory[] = "/tmp/test-socket.XXXXXX";
static char path[64];

static int make_directory(void **state)
{
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	return 0;
}

static int remove_directory(void **state)
{
	unlink(path);
	return rmdir(directory);
}

static void test_listen_replaces_only_dead_sockets(void **state)
{
	int first = -EBADF, second = -EBADF;
	struct stat st;

	assert_int_equal(socket_listen(path, 0640, &first), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(socket_listen(path, 0640, &second), -EADDRINUSE);
	close(first);
	assert_int_equal(socket_connect(path, 0, &second), -ECONNREFUSED);
	assert_int_equal(socket_listen(path, 0640, &second), 0);
	close(second);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(socket_listen(path, 0640, &first), -EEXIST);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(socket_connect(path, 0, &second), -ENOENT);
}

static void test_connect_blocks_only_on_request(void **state)
{
	int listener = -EBADF, waits = -EBADF, waits_not = -EBADF;

	assert_int_equal(socket_listen(path, 0600, &listener), 0);
	assert_int_equal(socket_connect(path, 0, &waits), 0);
	assert_int_equal(socket_connect(path, SOCK_NONBLOCK, &waits_not), 0);
	assert_int_equal(fcntl(waits, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(waits_not, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(waits, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(waits_not, F_GETFD), FD_CLOEXEC);
	close(waits);
	close(waits_not);
	close(listener);
}

static void test_a_path_must_fit(void **state)
{
	char name[200];
	int fd;

	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(socket_connect(name, 0, &fd), -ENAMETOOLONG);
	assert_int_equal(socket_listen(name, 0600, &fd), -ENAMETOOLONG);
}

static void test_peer_is_known(void **state)
{
	struct socket_peer peer;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(socket_peer_read(fds[0], &peer), 0);
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(peer.uid, getuid());
	assert_true(socket_peer_is_in(&peer, getgid()));
	assert_false(socket_peer_is_in(&peer, 4242));
	peer.groups[0] = 4242;
	peer.nr_groups = 1;
	assert_true(socket_peer_is_in(&peer, 4242));
	cleanup_fd(&peer.pidfd);
	close(fds[0]);
	close(fds[1]);
}

static void test_lines_are_unchanged(void **state)
{
	struct line_buffer buffer = { .max = 16 };
	size_t length;
	int fds[2];
	char *line;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "one\n\ntwo\nthr", 12), 12);
	assert_int_equal(line_buffer_fill(&buffer, fds[0]), 12);
	for (const char *const *expected = (const char *const[]){ "one", "", "two", NULL };
	     *expected; expected++) {
		assert_true(line_buffer_has_line(&buffer));
		assert_true(line_buffer_next(&buffer, &line, &length));
		assert_string_equal(line, *expected);
		assert_int_equal(length, strlen(*expected));
	}
	assert_false(line_buffer_has_line(&buffer));
	assert_false(line_buffer_next(&buffer, &line, &length));
	assert_int_equal(write(fds[1], "ee5678901234\nx", 14), 14);
	while (!line_buffer_has_line(&buffer))
		assert_true(line_buffer_fill(&buffer, fds[0]) > 0);
	assert_true(line_buffer_next(&buffer, &line, &length));
	assert_string_equal(line, "three5678901234");
	line_buffer_clear(&buffer);
	close(fds[0]);
	close(fds[1]);
}

static void test_memory_of_lines_is_freed(void **state)
{
	struct line_buffer buffer = { .max = 1 << 20 };
	size_t length;
	int fds[2];
	char *line;

	assert_int_equal(pipe(fds), 0);
	line_buffer_trim(&buffer); /* nothing was read yet */
	assert_int_equal(dprintf(fds[1], "%05000d\nab", 0), 5003);
	while (!line_buffer_has_line(&buffer))
		assert_true(line_buffer_fill(&buffer, fds[0]) > 0);
	line_buffer_trim(&buffer); /* the line is not taken yet */
	assert_true(line_buffer_next(&buffer, &line, &length));
	assert_int_equal(length, 5000);
	line_buffer_trim(&buffer);
	assert_true(buffer.capacity <= 5003 - 5001);
	assert_int_equal(dprintf(fds[1], "c\nd\nrest"), 8);
	while (!line_buffer_has_line(&buffer))
		assert_true(line_buffer_fill(&buffer, fds[0]) > 0);
	for (const char *const *expected = (const char *const[]){ "abc", "d", NULL }; *expected;
	     expected++) {
		while (!line_buffer_has_line(&buffer))
			assert_true(line_buffer_fill(&buffer, fds[0]) > 0);
		assert_true(line_buffer_next(&buffer, &line, &length));
		assert_string_equal(line, *expected);
		line_buffer_trim(&buffer);
	}
	assert_false(line_buffer_has_line(&buffer));
	line_buffer_clear(&buffer);
	close(fds[0]);
	close(fds[1]);
}

/* A line can have at most `max` bytes, including its newline. A longer line is refused. */
static void test_a_line_has_a_maximum_length(void **state)
{
	for (size_t size = 15; size <= 18; size++) {
		struct line_buffer buffer = { .max = 16 };
		char text[32], *line;
		size_t length;
		ssize_t n = 0;
		int fds[2];

		memset(text, 'x', sizeof(text));
		text[size - 1] = '\n';
		assert_int_equal(pipe(fds), 0);
		assert_int_equal(write(fds[1], text, size), (ssize_t)size);
		close(fds[1]);
		while (!line_buffer_has_line(&buffer) && n >= 0)
			n = line_buffer_fill(&buffer, fds[0]);
		assert_int_equal(line_buffer_next(&buffer, &line, &length), size <= 16);
		assert_int_equal(n == -EMSGSIZE, size > 16);
		line_buffer_clear(&buffer);
		close(fds[0]);
	}
}

static void test_base64_of_all_lengths(void **state)
{
	uint8_t bytes[64];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 251);
	for (size_t size = 0; size <= sizeof(bytes); size++) {
		CLEANUP_FREE char *text = NULL;
		CLEANUP_FREE void *data = NULL;
		size_t length, decoded;

		text = base64_encode(bytes, size, &length);
		assert_non_null(text);
		assert_int_equal(strlen(text), length);
		assert_int_equal(base64_decode(text, length, &data, &decoded), 0);
		assert_int_equal(decoded, size);
		assert_memory_equal(data, bytes, size);
	}
}

static void test_base64_vectors_and_invalid_text(void **state)
{
	static const char *const nonsense[] = { "A",	"AA",	"AAA",	"A===", "====",
						"A=AA", "AA=A", "AA A", "AA\nA" };
	CLEANUP_FREE char *text = NULL;
	void *data;
	size_t size;

	text = base64_encode("foobar", 6, &size);
	assert_string_equal(text, "Zm9vYmFy");
	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++)
		assert_int_equal(base64_decode(nonsense[i], strlen(nonsense[i]), &data, &size),
				 -EBADMSG);
}

static void send_descriptors(int socket, int nr)
{
	char space[CMSG_SPACE(4 * sizeof(int))] = {}, byte = 'a';
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = CMSG_LEN((size_t)nr * sizeof(int)) };
	struct cmsghdr *control = CMSG_FIRSTHDR(&header);

	control->cmsg_len = CMSG_LEN((size_t)nr * sizeof(int));
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	for (int i = 0; i < nr; i++)
		memcpy(CMSG_DATA(control) + (size_t)i * sizeof(int), &(int){ STDIN_FILENO },
		       sizeof(int));
	assert_int_equal(sendmsg(socket, &header, 0), 1);
}

static int next_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

/* Descriptors that nobody asked for must not stay open. */
static void test_messages_with_descriptors(void **state)
{
	int sockets[2], fd = -1, next;
	char bytes[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	next = next_descriptor();
	assert_int_equal(socket_send(sockets[0], 0, "ab", 2, STDIN_FILENO), 0);
	assert_int_equal(socket_receive(sockets[1], 0, bytes, sizeof(bytes), &fd), 2);
	assert_int_equal(fd, next);
	close(fd);
	assert_int_equal(socket_send(sockets[0], 0, "ab", 2, -1), 0);
	assert_int_equal(socket_receive(sockets[1], 0, bytes, sizeof(bytes), &fd), 2);
	assert_true(fd < 0);
	assert_int_equal(socket_send(sockets[0], 0, "ab", 2, STDIN_FILENO), 0);
	assert_int_equal(socket_receive(sockets[1], 0, bytes, sizeof(bytes), NULL), -EMSGSIZE);
	assert_int_equal(socket_send(sockets[0], 0, "abc", 3, -1), 0);
	assert_int_equal(socket_receive(sockets[1], 0, bytes, sizeof(bytes), &fd), -EMSGSIZE);
	for (int nr = 2; nr <= 4; nr++) {
		send_descriptors(sockets[0], nr);
		assert_int_equal(socket_receive(sockets[1], 0, bytes, sizeof(bytes), &fd),
				 -EMSGSIZE);
	}
	assert_int_equal(next_descriptor(), next);
	close(sockets[0]);
	assert_int_equal(socket_receive(sockets[1], 0, bytes, sizeof(bytes), &fd), 0);
	close(sockets[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listen_replaces_only_dead_sockets),
		cmocka_unit_test(test_connect_blocks_only_on_request),
		cmocka_unit_test(test_a_path_must_fit),
		cmocka_unit_test(test_peer_is_known),
		cmocka_unit_test(test_messages_with_descriptors),
		cmocka_unit_test(test_lines_are_unchanged),
		cmocka_unit_test(test_memory_of_lines_is_freed),
		cmocka_unit_test(test_a_line_has_a_maximum_length),
		cmocka_unit_test(test_base64_of_all_lengths),
		cmocka_unit_test(test_base64_vectors_and_invalid_text),
	};

	return cmocka_run_group_tests_name("socket", tests, make_directory, remove_directory);
}
