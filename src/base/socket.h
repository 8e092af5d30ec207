/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Unix sockets, messages, the identity of a peer, and reading lines from a descriptor. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * `flags` is 0 or SOCK_NONBLOCK. With SOCK_NONBLOCK, returns -EAGAIN if the queue of the
 * listener is full. Returns -ENAMETOOLONG if the path does not fit into a socket address.
 */
int socket_connect(const char *path, int flags, int *ret_fd);

/*
 * *ret_fd is non-blocking. A socket that a dead listener left at `path` is replaced. Returns
 * -EADDRINUSE if a process still listens on the socket, and -EEXIST if the file at `path` is
 * not a socket.
 */
int socket_listen(const char *path, mode_t mode, int *ret_fd);

/*
 * One message of a SOCK_SEQPACKET socket, with a descriptor unless `fd` is negative. `flags` is 0
 * or MSG_DONTWAIT.
 */
int socket_send(int socket, int flags, const void *data, size_t size, int fd);

/*
 * Receives one message of at most `size` bytes and returns its length, or 0 at the end. The caller
 * closes *ret_fd, which is negative if no descriptor came with the message; with a `ret_fd` of
 * NULL, descriptors are not accepted. -EMSGSIZE: the message is longer, or has several descriptors.
 */
ssize_t socket_receive(int socket, int flags, void *data, size_t size, int *ret_fd);

#define SOCKET_GROUPS_MAX 256

/* The identity of a peer at the time of its connect(), as the kernel recorded it. */
struct socket_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	int pidfd; /* negative if the kernel does not support it */
	gid_t groups[SOCKET_GROUPS_MAX];
	size_t nr_groups;
};

int socket_peer_read(int fd, struct socket_peer *ret);
/* Checks the main group and the supplementary groups. */
bool socket_peer_is_in(const struct socket_peer *peer, gid_t group);

/* Bytes behind a line that its reader may change for a moment: a parser in place needs zeros. */
#define LINE_BUFFER_PADDING 4

/* Splits received bytes into lines. To initialize it, set `max` and zero the rest. */
struct line_buffer {
	char *data;
	size_t used;
	size_t capacity;
	size_t taken;	/* bytes of lines that line_buffer_next() returned */
	size_t scanned; /* bytes that were already searched for a newline */
	size_t max;	/* maximum length of a line, with its newline */
};

/*
 * Reads once, as much as is available and fits. Returns the number of bytes, 0 at the end of
 * the stream, -EAGAIN if no data is available, and -EMSGSIZE if a line is too long.
 */
ssize_t line_buffer_fill(struct line_buffer *buffer, int fd);

/*
 * Gets the next complete line, zero-terminated and without its newline. The line is valid until
 * the next fill. Returns false if no complete line is available yet.
 */
bool line_buffer_next(struct line_buffer *buffer, char **ret_line, size_t *ret_length);

bool line_buffer_has_line(struct line_buffer *buffer);

/* Frees the memory of all lines that were taken, if it is most of it. They are no longer valid. */
void line_buffer_trim(struct line_buffer *buffer);
void line_buffer_clear(struct line_buffer *buffer);
