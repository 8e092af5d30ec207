/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/socket.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"

/* Since Linux 6.5; older headers do not have it. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define LINE_BUFFER_FIRST 4096
/* Maximum number of connections that wait for accept(). */
#define BACKLOG		  128

static int address_of(const char *path, struct sockaddr_un *ret)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	*ret = address;
	return 0;
}

int socket_connect(const char *path, int flags, int *ret_fd)
{
	CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	struct sockaddr_un address;
	int err = address_of(path, &address);

	if (err < 0)
		return err;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Only a refused connection proves that no process listens on the socket. */
static int remove_dead(const char *path)
{
	CLEANUP_FD int fd = -EBADF;
	struct stat st;
	int err;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	err = socket_connect(path, SOCK_NONBLOCK, &fd);
	if (err == 0 || err == -EAGAIN)
		return -EADDRINUSE;
	if (err != -ECONNREFUSED)
		return err;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int socket_listen(const char *path, mode_t mode, int *ret_fd)
{
	CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	int err = fd < 0 ? -errno : address_of(path, &address);

	if (err < 0)
		return err;
	err = remove_dead(path);
	if (err < 0)
		return err;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* No client can connect before listen(), so chmod() takes effect in time. */
	if (chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
		err = -errno;
		unlink(path);
		return err;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int socket_send(int socket, int flags, const void *data, size_t size, int fd)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = size };
	union control control = {};
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ssize_t socket_receive(int socket, int flags, void *data, size_t size, int *ret_fd)
{
	struct iovec part = { .iov_base = data, .iov_len = size };
	union control control = {};
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = ret_fd ? &control : NULL,
				  /* Not CMSG_SPACE(), which has room for two descriptors. */
				  .msg_controllen = ret_fd ? CMSG_LEN(sizeof(int)) : 0 };
	struct cmsghdr *header;
	CLEANUP_FD int fd = -EBADF;
	ssize_t nr = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);

	if (nr < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EMSGSIZE;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return nr;
}

int socket_peer_read(int fd, struct socket_peer *ret)
{
	struct socket_peer peer = { .pidfd = -EBADF };
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	peer.pid = credentials.pid;
	peer.uid = credentials.uid;
	peer.gid = credentials.gid;
	size = sizeof(peer.groups);
	/* If the groups do not fit, only the main group counts. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups, &size) == 0)
		peer.nr_groups = size / sizeof(gid_t);
	size = sizeof(peer.pidfd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &peer.pidfd, &size) < 0)
		peer.pidfd = -EBADF;
	*ret = peer;
	return 0;
}

bool socket_peer_is_in(const struct socket_peer *peer, gid_t group)
{
	if (peer->gid == group)
		return true;
	for (size_t i = 0; i < peer->nr_groups; i++)
		if (peer->groups[i] == group)
			return true;
	return false;
}

/* Moves bytes that are not taken yet to the front. */
static void drop_taken(struct line_buffer *buffer)
{
	if (!buffer->taken)
		return;
	buffer->used -= buffer->taken;
	buffer->scanned -= buffer->taken;
	memmove(buffer->data, buffer->data + buffer->taken, buffer->used);
	buffer->taken = 0;
}

/* Makes room for at least one byte. */
static int make_room(struct line_buffer *buffer)
{
	size_t capacity = buffer->capacity ? 2 * buffer->capacity : LINE_BUFFER_FIRST;
	char *larger;

	drop_taken(buffer);
	if (buffer->used < buffer->capacity)
		return 0;
	if (buffer->used >= buffer->max)
		return -EMSGSIZE;
	if (capacity > buffer->max)
		capacity = buffer->max;
	larger = realloc(buffer->data, capacity + LINE_BUFFER_PADDING);
	if (!larger)
		return -ENOMEM;
	buffer->data = larger;
	buffer->capacity = capacity;
	return 0;
}

ssize_t line_buffer_fill(struct line_buffer *buffer, int fd)
{
	int err = make_room(buffer);
	ssize_t n;

	if (err < 0)
		return err;
	do
		n = read(fd, buffer->data + buffer->used, buffer->capacity - buffer->used);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buffer->used += (size_t)n;
	return n;
}

bool line_buffer_has_line(struct line_buffer *buffer)
{
	size_t left = buffer->used - buffer->scanned;
	const char *end = left ? memchr(buffer->data + buffer->scanned, '\n', left) : NULL;

	buffer->scanned = end ? (size_t)(end - buffer->data) : buffer->used;
	return end;
}

bool line_buffer_next(struct line_buffer *buffer, char **ret_line, size_t *ret_length)
{
	if (!line_buffer_has_line(buffer))
		return false;
	buffer->data[buffer->scanned] = '\0';
	*ret_line = buffer->data + buffer->taken;
	*ret_length = buffer->scanned - buffer->taken;
	buffer->taken = ++buffer->scanned;
	return true;
}

void line_buffer_trim(struct line_buffer *buffer)
{
	char *smaller;

	/* Otherwise each of many short lines would move all that follow. */
	if (buffer->taken < buffer->used - buffer->taken)
		return;
	drop_taken(buffer);
	if (!buffer->used) {
		line_buffer_clear(buffer);
		return;
	}
	smaller = realloc(buffer->data, buffer->used + LINE_BUFFER_PADDING);
	if (!smaller)
		return;
	buffer->data = smaller;
	buffer->capacity = buffer->used;
}

void line_buffer_clear(struct line_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct line_buffer){ .max = buffer->max };
}
