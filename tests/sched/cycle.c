/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cycle N: loads the BPF programs once, then attaches and detaches the scheduler N
 * times. Prints median, 99th percentile and maximum of both durations, in ms.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/kernel.h"

/* Time for the tasks of the machine to run under the scheduler. */
#define ATTACHED_US 50000
#define PROGRESS    50
#define MAX_CYCLES  1000

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

static int cycle(struct kernel *kernel, u64 *ret_attach_ms, u64 *ret_detach_ms)
{
	u64 begin = time_now_ns() / NSEC_PER_MSEC;
	int err = kernel_attach_scheduler(kernel);

	if (err < 0)
		return err;
	*ret_attach_ms = time_now_ns() / NSEC_PER_MSEC - begin;
	usleep(ATTACHED_US);
	if (!is_attached())
		return -EIDRM;
	begin = time_now_ns() / NSEC_PER_MSEC;
	kernel_detach_scheduler(kernel);
	*ret_detach_ms = time_now_ns() / NSEC_PER_MSEC - begin;
	return is_attached() ? -EBUSY : 0;
}

static int by_size(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void report(const char *what, u64 *took_ms, int nr)
{
	qsort(took_ms, (size_t)nr, sizeof(*took_ms), by_size);
	printf("%s, ms: p50 %" PRIu64 ", p99 %" PRIu64 ", max %" PRIu64 "\n", what,
	       (uint64_t)took_ms[nr / 2], (uint64_t)took_ms[nr - 1 - nr / 100],
	       (uint64_t)took_ms[nr - 1]);
}

int main(int argc, char **argv)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = NULL;
	u64 attach_ms[MAX_CYCLES], detach_ms[MAX_CYCLES];
	int nr = argc == 2 ? atoi(argv[1]) : 0, i, err;

	if (nr <= 0 || nr > MAX_CYCLES) {
		fputs("Usage: cycle N\n", stderr);
		return 2;
	}
	err = kernel_new(NULL, &kernel);
	for (i = 0; i < nr && err == 0; i++) {
		if (i && i % PROGRESS == 0)
			printf("%d cycles so far\n", i);
		fflush(stdout);
		err = cycle(kernel, &attach_ms[i], &detach_ms[i]);
	}
	if (err < 0) {
		fprintf(stderr, "cycle: failed after %d cycles: %s\n", i, strerror(-err));
		return EXIT_FAILURE;
	}
	printf("%d cycles\n", nr);
	report("attach", attach_ms, nr);
	report("detach", detach_ms, nr);
	return EXIT_SUCCESS;
}
