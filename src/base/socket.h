/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Local sockets, who is at the other end of one, and lines that come out of it. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * `flags` is 0 or SOCK_NONBLOCK; then a listener whose queue is full is -EAGAIN. A path that
 * no socket address can hold is -ENAMETOOLONG.
 */
int socket_connect(const char *path, int flags, int *ret_fd);

/*
 * Non-blocking. What a dead listener left at `path` is replaced; a socket that somebody
 * still listens on is -EADDRINUSE, and anything else in its place is left alone (-EEXIST).
 */
int socket_listen(const char *path, mode_t mode, int *ret_fd);

#define SOCKET_GROUPS_MAX 256

/* Whoever connected, as the kernel noted it at that moment. */
struct socket_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	int pidfd; /* below 0 where the kernel does not give one */
	gid_t groups[SOCKET_GROUPS_MAX];
	size_t nr_groups;
};

int socket_peer_read(int fd, struct socket_peer *ret);
/* By its main group or any other. */
bool socket_peer_is_in(const struct socket_peer *peer, gid_t group);

/* Bytes that came, and lines in them. All zero but `max` is an empty one. */
struct line_buffer {
	char *data;
	size_t used;
	size_t capacity;
	size_t taken;	/* bytes of lines that were handed out */
	size_t scanned; /* bytes known to hold no end of a line */
	size_t max;	/* the longest line, with its end */
};

/*
 * Reads once, what there is and fits. Gives the number of bytes, 0 at the end of the
 * stream, -EAGAIN when there is nothing and -EMSGSIZE when a line got too long.
 */
ssize_t line_buffer_fill(struct line_buffer *buffer, int fd);

/*
 * The next whole line without its end, zero-terminated, good until the next fill. False
 * when there is none yet.
 */
bool line_buffer_next(struct line_buffer *buffer, char **ret_line, size_t *ret_length);

bool line_buffer_has_line(struct line_buffer *buffer);

void line_buffer_clear(struct line_buffer *buffer);
