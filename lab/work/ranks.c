/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "work/process.h"

/* The remaining ranks may wait in a barrier or a collective for a rank that ended. */
static void ranks_kill(const pid_t *pids, u64 nr)
{
	for (u64 i = 0; i < nr; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
}

static int ranks_wait(pid_t *pids, u64 nr)
{
	int r = 0;

	for (u64 left = nr; left > 0; left--) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		for (u64 i = 0; i < nr; i++)
			if (pids[i] == pid)
				pids[i] = 0;
		if (status != 0 && r == 0) {
			r = -ECHILD;
			ranks_kill(pids, nr);
		}
	}
	return r;
}

int ranks_run(u64 nr, int (*run)(void *arg, u64 rank), void *arg, pid_t *ret_rank0)
{
	pid_t pids[RANKS_MAX] = {}, rank0;
	u64 started;
	int r;

	for (started = 0; started < nr; started++) {
		pids[started] = fork_tied();
		if (pids[started] == 0)
			exit(run(arg, started) < 0);
		if (pids[started] < 0) {
			fprintf(stderr, "fork: %s\n", strerror(errno));
			ranks_kill(pids, started);
			break;
		}
	}
	rank0 = pids[0];
	r = ranks_wait(pids, started);
	if (started < nr)
		return -EAGAIN;
	*ret_rank0 = rank0;
	return r;
}

void ranks_barrier_init(pthread_barrier_t *barrier, u64 nr)
{
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, (unsigned int)nr);
	pthread_barrierattr_destroy(&attr);
}
