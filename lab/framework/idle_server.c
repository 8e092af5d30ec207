/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server with few requests: its device is idle because there is nothing to do. It waits
 * for requests by epoll, by short sleeps, or by polling with sched_yield() as workers of
 * vLLM do. A client process sends the requests. With epoll it is a child of the server, as a
 * tokenizer may be. A server that polls does not know its client.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "framework/framework.h"
#include "work/process.h"

#define POLL_NS NSEC_PER_MSEC

static void sleep_ns(u64 ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	nanosleep(&ts, NULL);
}

static void client_run(const struct framework_config *config, int fd)
{
	u64 request = 0;

	do
		sleep_ns(random_around((u64)(NSEC_PER_SEC / config->rate), config->work.seed,
				       request++));
	while (send(fd, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request));
}

/* As fork(); gives the parent the pid of its child, or of no process any more. */
static pid_t client_fork(enum framework_wait how)
{
	pid_t pid = fork_tied();

	if (how == WAIT_EPOLL || pid < 0)
		return pid;
	if (pid == 0 && fork() != 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return pid;
}

/* The client ends when its socket is closed. */
static pid_t client_start(struct rank *rank, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		rank_fail(rank, "socketpair", strerror(errno));
		return -1;
	}
	pid = client_fork((enum framework_wait)rank->config->wait);
	if (pid == 0) {
		close(fds[0]);
		client_run(rank->config, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	if (pid < 0) {
		rank_fail(rank, "fork", strerror(errno));
		close(fds[0]);
	} else {
		*ret_fd = fds[0];
	}
	return pid;
}

static void wait_once(enum framework_wait how, int epoll_fd)
{
	struct epoll_event event;

	switch (how) {
	case WAIT_EPOLL: epoll_wait(epoll_fd, &event, 1, -1); break;
	case WAIT_SLEEP: sleep_ns(POLL_NS); break;
	case WAIT_YIELD: sched_yield(); break;
	}
}

static void request_wait(struct rank *rank, int fd, int epoll_fd)
{
	u64 request;
	ssize_t n;

	did_set(&rank->did, TRUTH_DID_REQUEST, 0);
	while ((n = recv(fd, &request, sizeof(request), MSG_DONTWAIT)) < 0 && errno == EAGAIN)
		wait_once((enum framework_wait)rank->config->wait, epoll_fd);
	if (n <= 0)
		rank_fail(rank, "client", n < 0 ? strerror(errno) : "ended");
	did_set(&rank->did, TRUTH_DID_COMPUTE, 0);
}

static void serve(struct rank *rank, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		rank_fail(rank, "epoll", strerror(errno));
	while (rank_next_step(rank)) {
		request_wait(rank, fd, epoll_fd);
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		device_item(rank, &rank->did, NULL);
		rank_end_step(rank);
	}
	if (epoll_fd >= 0)
		close(epoll_fd);
}

void idle_server_run(struct rank *rank)
{
	int fd;
	pid_t client = client_start(rank, &fd);

	if (client < 0)
		return;
	serve(rank, fd);
	close(fd);
	if (rank->config->wait == WAIT_EPOLL)
		waitpid(client, NULL, 0);
}
