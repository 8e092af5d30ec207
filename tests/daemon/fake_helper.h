/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A starter and a loop for tests, in which the test is the process that zerneld asks. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/socket.h"
#include "daemon/loop.h"
#include "daemon/starter.h"

#define NO_LOOP	   NULL
#define NO_STARTER NULL

static struct {
	int fd;			    /* the test's end; negative: the process does not run */
	struct loop_source *source; /* zerneld's end */
	u32 nr_starts, nr_kills;
	int error;     /* of the next start */
	bool is_stuck; /* it does not end when it is killed */
} processes[PROGRAM_NR];

int starter_start(struct starter *starter, enum program program, int *ret_fd)
{
	int sockets[2];

	if (processes[program].error < 0)
		return processes[program].error;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(fcntl(sockets[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(sockets[1], F_SETFL, O_NONBLOCK), 0);
	processes[program].fd = sockets[1];
	processes[program].nr_starts++;
	*ret_fd = sockets[0];
	return 0;
}

void starter_kill(struct starter *starter, enum program program)
{
	processes[program].nr_kills++;
	if (!processes[program].is_stuck)
		close(processes[program].fd);
	processes[program].fd = -EBADF;
	processes[program].source = NULL;
}

int loop_add(struct loop *loop, struct loop_source *source, int fd, u32 events)
{
	source->fd = fd;
	for (u32 i = 0; i < PROGRAM_NR; i++)
		if (processes[i].fd > 0 && !processes[i].source) {
			processes[i].source = source;
			break;
		}
	return 0;
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	source->fd = -EBADF;
}

static inline void processes_reset(void)
{
	for (u32 i = 0; i < PROGRAM_NR; i++) {
		if (processes[i].fd > 0)
			close(processes[i].fd);
		memset(&processes[i], 0, sizeof(processes[i]));
		processes[i].fd = -EBADF;
	}
}

/* Reads the request that zerneld sent. Returns its size, or a negative errno if there is none. */
static inline ssize_t process_receive(enum program program, void *ret, size_t size)
{
	return socket_receive(processes[program].fd, MSG_DONTWAIT, ret, size, NULL);
}

/* Lets zerneld read a message. `fd` may be negative. */
static inline void process_send(enum program program, const void *message, size_t size, int fd)
{
	struct loop_source *source = processes[program].source;

	assert_int_equal(socket_send(processes[program].fd, 0, message, size, fd), 0);
	source->on_event(source->ctx, EPOLLIN);
}

static inline void process_end(enum program program)
{
	struct loop_source *source = processes[program].source;

	shutdown(processes[program].fd, SHUT_RDWR);
	source->on_event(source->ctx, EPOLLIN | EPOLLHUP);
}
