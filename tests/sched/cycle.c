/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cycle N: loads the kernel side once, then attaches and detaches the scheduler N
 * times. Says how long the slowest of each took, in ms.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "collect/kernel.h"

/* Time for the tasks of the machine to run under it. */
#define ATTACHED_US 50000
#define PROGRESS    50

DEFINE_CLEANUP(struct kernel, kernel_free);

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000 + (u64)ts.tv_nsec / NSEC_PER_MSEC;
}

static bool is_attached(void)
{
	char state[16] = "";
	FILE *file = fopen("/sys/kernel/sched_ext/state", "re");

	if (file && !fgets(state, sizeof(state), file))
		*state = '\0';
	if (file)
		fclose(file);
	return strcmp(state, "enabled\n") == 0;
}

static void keep_max(u64 begin_ms, u64 *max)
{
	u64 took = now_ms() - begin_ms;

	if (took > *max)
		*max = took;
}

static int cycle(struct kernel *kernel, u64 *attach_ms, u64 *detach_ms)
{
	u64 begin = now_ms();
	int err = kernel_attach_scheduler(kernel);

	if (err < 0)
		return err;
	keep_max(begin, attach_ms);
	usleep(ATTACHED_US);
	if (!is_attached())
		return -EIDRM;
	begin = now_ms();
	kernel_detach_scheduler(kernel);
	keep_max(begin, detach_ms);
	return is_attached() ? -EBUSY : 0;
}

int main(int argc, char **argv)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = NULL;
	u64 attach_ms = 0, detach_ms = 0;
	int nr = argc == 2 ? atoi(argv[1]) : 0, i, err;

	if (nr <= 0) {
		fputs("Usage: cycle N\n", stderr);
		return 2;
	}
	err = kernel_new(NULL, &kernel);
	for (i = 0; i < nr && err == 0; i++) {
		if (i && i % PROGRESS == 0)
			printf("%d cycles so far\n", i);
		fflush(stdout);
		err = cycle(kernel, &attach_ms, &detach_ms);
	}
	if (err < 0) {
		fprintf(stderr, "cycle: after %d: %s\n", i, strerror(-err));
		return EXIT_FAILURE;
	}
	printf("%d cycles; the slowest attach took %" PRIu64 " ms, the slowest detach %" PRIu64
	       " ms\n",
	       nr, (uint64_t)attach_ms, (uint64_t)detach_ms);
	return EXIT_SUCCESS;
}
