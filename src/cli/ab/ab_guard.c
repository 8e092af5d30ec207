/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/ab/ab_guard.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "ipc/client.h"

/* A restarted zerneld needs time to start, and has the state of its configuration. */
#define TRIES	 10
#define RETRY_NS (500 * NSEC_PER_MSEC)

const char *ab_guard_method(bool acts)
{
	return acts ? "scheduler.attach" : "scheduler.detach";
}

static int restore(const char *socket, bool acts)
{
	CLEANUP(client_free_cleanup) struct client *client = NULL;
	int err = client_connect(socket, &client);

	return err < 0 ? err : client_request(client, ab_guard_method(acts), NULL, NULL, NULL);
}

/* A refusal is an answer: do not retry. */
static int restore_somehow(const char *socket, bool acts)
{
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	int err = restore(socket, acts);

	for (u32 i = 1; i < TRIES && err < 0 && err != -EREMOTEIO; i++) {
		nanosleep(&pause, NULL);
		err = restore(socket, acts);
	}
	return err;
}

/* A byte dismisses the guard. End of file without a byte makes it restore the state. */
static int guard_main(int fd, const char *socket, bool acts)
{
	char byte;
	ssize_t n;

	/* Leave the process group to which the terminal sends signals. */
	setsid();
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 || restore_somehow(socket, acts) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int ab_guard_begin(struct ab_guard *guard, const char *socket, bool acts)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		_exit(guard_main(fds[0], socket, acts));
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return -errno;
	}
	*guard = (struct ab_guard){ .pid = pid, .fd = fds[1] };
	return 0;
}

static int end(struct ab_guard *guard)
{
	int status;
	pid_t pid;

	close(guard->fd);
	do
		pid = waitpid(guard->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	return pid == guard->pid && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS ? 0
											     : -EIO;
}

int ab_guard_restore(struct ab_guard *guard)
{
	return end(guard);
}

void ab_guard_dismiss(struct ab_guard *guard)
{
	while (write(guard->fd, "x", 1) < 0 && errno == EINTR)
		;
	end(guard);
}
