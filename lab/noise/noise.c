/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * noise: competing load on the same machine. It reports its own CPU time. A comparison
 * can therefore distinguish a scheduler that helps a job from a scheduler that starves
 * all other tasks.
 *
 *   hogs N          N processes that only compute
 *   forkstorm RATE  RATE processes per second, each like a short compiler run: a
 *                   fork, an exec, 5 to 50 ms of CPU time and some memory
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth/truth.h"
#include "work/burn.h"
#include "work/options.h"
#include "work/process.h"

#define MAX_HOGS      1024
#define MAX_RATE      1000
#define MAX_JOBS      64 /* jobs at the same time; jobs above the limit are skipped and counted */
#define HOG_UNIT_NS   NSEC_PER_MSEC
#define JOB_MIN_US    5000
#define JOB_MAX_US    50000
#define JOB_MEM_BYTES (1ULL << 20)
#define PAGE_BYTES    4096

struct noise {
	double seconds; /* 0: until SIGTERM */
	u64 seed;
	u64 count; /* the operand: hogs, or jobs per second */
	struct burn burn;
};

/* Totals of the processes that were reaped. */
struct tally {
	u64 nr_processes;
	u64 nr_skipped;
	u64 work; /* milliseconds of work finished by hogs, jobs finished by a fork storm */
	double cpu_seconds;
};

static double seconds_of(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static void tally_process(struct tally *tally, const struct rusage *usage)
{
	tally->cpu_seconds += seconds_of(usage->ru_utime) + seconds_of(usage->ru_stime);
	tally->nr_processes++;
}

static void signals_block(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGINT);
	sigprocmask(SIG_BLOCK, ret_set, NULL);
}

/* Returns true when a signal requests the end, false at `until_ns` (0: no time limit). */
static bool wait_until(const sigset_t *set, u64 until_ns)
{
	for (;;) {
		u64 now = truth_now_ns();
		u64 left = until_ns > now ? until_ns - now : 0;
		struct timespec ts = { (time_t)(left / NSEC_PER_SEC), (long)(left % NSEC_PER_SEC) };
		int r = until_ns ? sigtimedwait(set, NULL, &ts) : sigwaitinfo(set, NULL);

		if (r > 0)
			return true;
		if (errno != EINTR)
			return false;
	}
}

static u64 end_of(const struct noise *noise, u64 begin_ns)
{
	return noise->seconds > 0 ? begin_ns + (u64)(noise->seconds * NSEC_PER_SEC) : 0;
}

static void hog(const struct noise *noise, u64 *units)
{
	prctl(PR_SET_NAME, "hog");
	for (;;) {
		burn_ns(&noise->burn, HOG_UNIT_NS);
		__atomic_fetch_add(units, 1, __ATOMIC_RELAXED);
	}
}

static int run_hogs(const struct noise *noise, struct tally *tally)
{
	u64 *units = shared_alloc(sizeof(*units));
	u64 end = end_of(noise, truth_now_ns());
	pid_t pids[MAX_HOGS];
	sigset_t set;
	u64 nr;
	int r = 0;

	if (!units || noise->count > MAX_HOGS)
		return units ? -E2BIG : -ENOMEM;
	signals_block(&set);
	for (nr = 0; nr < noise->count; nr++) {
		pids[nr] = fork_tied();
		if (pids[nr] == 0)
			hog(noise, units);
		if (pids[nr] < 0) {
			r = -errno;
			break;
		}
	}
	if (r == 0)
		wait_until(&set, end);
	for (u64 i = 0; i < nr; i++)
		kill(pids[i], SIGKILL);
	for (u64 i = 0; i < nr; i++) {
		struct rusage usage;

		if (wait4(pids[i], NULL, 0, &usage) == pids[i])
			tally_process(tally, &usage);
	}
	tally->work = *units;
	return r;
}

/*
 * The body of one job, after the exec: `noise job MICROSECONDS ROUNDS`. ROUNDS is the
 * calibration of the parent; a job is too short to calibrate itself.
 */
static int run_job(u64 us, struct burn burn)
{
	volatile char *memory = malloc(JOB_MEM_BYTES);

	if (!memory)
		return EXIT_FAILURE;
	for (u64 at = 0; at < JOB_MEM_BYTES; at += PAGE_BYTES) {
		memory[at] = (char)at;
		burn_ns(&burn, us * NSEC_PER_USEC / (JOB_MEM_BYTES / PAGE_BYTES) / 2);
	}
	/* The thread's clock starts at the fork, so the startup counts as well. */
	for (u64 spent; (spent = thread_cpu_ns()) < us * NSEC_PER_USEC;)
		burn_ns(&burn, us * NSEC_PER_USEC - spent);
	free((void *)memory);
	return EXIT_SUCCESS;
}

static int job_start(const struct noise *noise, const sigset_t *set, u64 i)
{
	u64 us = JOB_MIN_US + random_at(noise->seed, i) % (JOB_MAX_US - JOB_MIN_US + 1);
	char length[24], rounds[24];
	pid_t pid;

	snprintf(length, sizeof(length), "%" PRIu64, (uint64_t)us);
	snprintf(rounds, sizeof(rounds), "%" PRIu64, (uint64_t)noise->burn.rounds_per_ms);
	pid = fork_tied();
	if (pid == 0) {
		sigprocmask(SIG_UNBLOCK, set, NULL);
		execl("/proc/self/exe", "noise", "job", length, rounds, (char *)NULL);
		_exit(127);
	}
	return pid < 0 ? -errno : 0;
}

/* Reaps the processes that ended; waits for all of them when `last`. */
static void jobs_reap(struct tally *tally, u64 *nr_running, bool last)
{
	struct rusage usage;
	int status;

	while (*nr_running && wait4(-1, &status, last ? 0 : WNOHANG, &usage) > 0) {
		tally_process(tally, &usage);
		tally->work += status == 0;
		--*nr_running;
	}
}

static int run_forkstorm(const struct noise *noise, struct tally *tally)
{
	u64 begin = truth_now_ns(), end = end_of(noise, begin), nr_running = 0;
	sigset_t set;
	int r = 0;

	if (noise->count > MAX_RATE)
		return -E2BIG;
	signals_block(&set);
	for (u64 i = 0; r == 0; i++) {
		u64 due = begin + i * NSEC_PER_SEC / noise->count;

		if (end && due >= end)
			break;
		if (wait_until(&set, due))
			break;
		jobs_reap(tally, &nr_running, false);
		if (nr_running == MAX_JOBS) {
			tally->nr_skipped++;
			continue;
		}
		r = job_start(noise, &set, i);
		nr_running += r == 0;
	}
	jobs_reap(tally, &nr_running, true);
	return r;
}

static const struct kind {
	const char *name;
	int (*run)(const struct noise *noise, struct tally *tally);
} kinds[] = {
	{ "hogs", run_hogs },
	{ "forkstorm", run_forkstorm },
};

static const struct option_row options[] = {
	{ "seconds", OPTION_DOUBLE, offsetof(struct noise, seconds), 0, NULL,
	  "run for this many seconds; 0: until SIGTERM" },
	{ "seed", OPTION_U64, offsetof(struct noise, seed), 0, NULL,
	  "seed of the lengths of jobs" },
};

static int kind_run(const struct kind *kind, const struct noise *noise)
{
	u64 begin = truth_now_ns();
	struct tally tally = {};
	int r = kind->run(noise, &tally);

	if (r < 0) {
		fprintf(stderr, "noise: %s: %s\n", kind->name, strerror(-r));
		return EXIT_FAILURE;
	}
	printf("{\"kind\":\"%s\",\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"work\":%" PRIu64
	       ",\"processes\":%" PRIu64 ",\"skipped\":%" PRIu64 "}\n",
	       kind->name, (double)(truth_now_ns() - begin) / NSEC_PER_SEC, tally.cpu_seconds,
	       (uint64_t)tally.work, (uint64_t)tally.nr_processes, (uint64_t)tally.nr_skipped);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct noise noise = { .seed = 1 };
	const char *usage = "noise hogs N|forkstorm RATE [OPTION...]";
	int operands, r;

	if (argc == 4 && strcmp(argv[1], "job") == 0)
		return run_job(strtoull(argv[2], NULL, 10),
			       (struct burn){ strtoull(argv[3], NULL, 10) });
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	r = options_parse(usage, options, ARRAY_SIZE(options), argc, argv, &noise, &operands);
	if (r > 0)
		return EXIT_SUCCESS;
	if (r == 0 && argc - operands == 2) {
		noise.count = strtoull(argv[operands + 1], NULL, 10);
		noise.burn = burn_calibrate();
		for (size_t i = 0; i < ARRAY_SIZE(kinds) && noise.count > 0; i++)
			if (strcmp(argv[operands], kinds[i].name) == 0)
				return kind_run(&kinds[i], &noise);
	}
	fprintf(stderr, "Usage: %s\n", usage);
	return 2;
}
