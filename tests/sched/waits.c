/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits: prints "ready", watches until SIGTERM, and then prints the longest time that
 * a task was runnable but did not run, in ns, and the name of the task.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "sched/waits.h"
#include "waits.skel.h"

int main(void)
{
	struct waits *skel;
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);

	skel = waits__open_and_load();
	if (!skel || waits__attach(skel) < 0) {
		fputs("waits: cannot load or attach the BPF programs\n", stderr);
		return EXIT_FAILURE;
	}
	puts("ready");
	fflush(stdout);
	sigwait(&set, &signal);
	printf("%" PRIu64 " %s[%" PRIu32 "]\n", (uint64_t)skel->bss->longest.ns,
	       skel->bss->longest.comm, skel->bss->longest.pid);
	waits__destroy(skel);
	return EXIT_SUCCESS;
}
