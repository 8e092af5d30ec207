/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * behave: a program with a selectable behavior. Its profile depends only on its file, so copies of
 * the file are different programs.
 *
 *   burn MS                  use MS of CPU time, without a sleep
 *   nap SECONDS PERIOD_US    wake up once per period, work a little, print the wakeup delay
 *   two-faced NAP BURN       nap for NAP seconds, then burn for BURN seconds of wall time
 *                            and print the CPU time of the burn
 *   storm SECONDS RATE FILE same|new
 *                            start FILE RATE times a second. Each process burns a fifth to
 *                            four fifths of the time until the next start (2 to 8 ms of
 *                            10). A start is skipped while 64 processes run.
 *                            new: use a new name for each start, so that the program is
 *                            always unknown
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "abi/types.h"

#define NAP_WORK_NS (100 * NSEC_PER_USEC)
#define MAX_NAPS    (1 << 20)
#define MAX_JOBS    64

static u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

static void burn_ns(u64 ns)
{
	u64 end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void sleep_until(u64 ns)
{
	struct timespec until = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static u32 nap(double seconds, u64 period_ns, u64 *late_ns)
{
	u64 next = clock_ns(CLOCK_MONOTONIC), end = next + (u64)(seconds * 1e9);
	u32 nr = 0;

	while (next < end && nr < MAX_NAPS) {
		u64 now;

		next += period_ns;
		sleep_until(next);
		now = clock_ns(CLOCK_MONOTONIC);
		late_ns[nr++] = now - next;
		burn_ns(NAP_WORK_NS);
		/* After a late wakeup, the period restarts. Missed wakeups are skipped. */
		if (now > next)
			next = clock_ns(CLOCK_MONOTONIC);
	}
	qsort(late_ns, nr, sizeof(*late_ns), compare);
	return nr;
}

static int run_nap(char **argv)
{
	static u64 late_ns[MAX_NAPS];
	u32 nr = nap(atof(argv[2]), (u64)atoi(argv[3]) * NSEC_PER_USEC, late_ns);

	if (nr)
		printf("naps %u, late us p50 %llu p99 %llu max %llu\n", nr, late_ns[nr / 2] / 1000,
		       late_ns[(u64)nr * 99 / 100] / 1000, late_ns[nr - 1] / 1000);
	return EXIT_SUCCESS;
}

static int run_two_faced(char **argv)
{
	static u64 late_ns[MAX_NAPS];
	u64 end, used;

	nap(atof(argv[2]), 5 * NSEC_PER_MSEC, late_ns);
	end = clock_ns(CLOCK_MONOTONIC) + (u64)(atof(argv[3]) * 1e9);
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (clock_ns(CLOCK_MONOTONIC) < end)
		;
	printf("cpu ms %llu\n", (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used) / NSEC_PER_MSEC);
	return EXIT_SUCCESS;
}

/* Returns the file itself or its i-th additional name. */
static char *job_name(char *file, bool is_new, u64 i)
{
	static char name[256];

	if (!is_new)
		return file;
	snprintf(name, sizeof(name), "%s-%llu", file, i);
	return name;
}

/*
 * Creates the names before the storm. A new link changes the metadata of the file, so the file
 * would be examined again.
 */
static bool make_names(char *file, u64 nr)
{
	for (u64 i = 0; i < nr; i++)
		if (link(file, job_name(file, true, i)) < 0 && errno != EEXIST)
			return false;
	return true;
}

static int run_storm(char **argv)
{
	bool is_new = strcmp(argv[5], "new") == 0;
	u64 begin, rate = (u64)atoi(argv[3]), nr_due = (u64)(atof(argv[2]) * (double)rate);
	u32 nr_running = 0, nr_run = 0, nr_left_out = 0;

	if (is_new && !make_names(argv[4], nr_due))
		return EXIT_FAILURE;
	begin = clock_ns(CLOCK_MONOTONIC);
	for (u64 i = 0; i < nr_due; i++) {
		char ms[16];
		char *job[] = { job_name(argv[4], is_new, i), (char[]){ "burn" }, ms, NULL };
		pid_t pid;

		snprintf(ms, sizeof(ms), "%.3f", 100.0 * (double)(2 + i * 5 % 7) / (double)rate);
		sleep_until(begin + i * NSEC_PER_SEC / rate);
		while (nr_running && waitpid(-1, NULL, WNOHANG) > 0)
			nr_running--;
		if (nr_running == MAX_JOBS) {
			nr_left_out++;
		} else if (posix_spawn(&pid, job[0], NULL, NULL, job, environ) == 0) {
			nr_running++;
			nr_run++;
		}
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("%u jobs, %u left out, in %.1f s\n", nr_run, nr_left_out,
	       (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e9);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "burn") == 0)
		burn_ns((u64)(atof(argv[2]) * 1e6));
	else if (argc == 4 && strcmp(argv[1], "nap") == 0)
		return run_nap(argv);
	else if (argc == 4 && strcmp(argv[1], "two-faced") == 0)
		return run_two_faced(argv);
	else if (argc == 6 && strcmp(argv[1], "storm") == 0)
		return run_storm(argv);
	else
		return 2;
	return EXIT_SUCCESS;
}
