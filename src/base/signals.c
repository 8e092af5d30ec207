/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/signals.h"
#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

int signals_open(const int *also, int *ret_fd, sigset_t *ret_former)
{
	sigset_t signals, former;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	for (; also && *also; also++)
		sigaddset(&signals, *also);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, &signals, &former);
	if (ret_former)
		*ret_former = former;
	*ret_fd = fd;
	return 0;
}

int signals_next(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void signals_restore(const sigset_t *former)
{
	sigprocmask(SIG_SETMASK, former, NULL);
}

int signals_start_thread(void *(*run)(void *ctx), void *ctx, pthread_t *ret)
{
	sigset_t all, former;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &former);
	err = pthread_create(ret, NULL, run, ctx);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	return -err;
}
