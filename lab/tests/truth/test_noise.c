/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests that noise reports its CPU time correctly, compared with the kernel's figures. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi/types.h"
#include "runs.h"

static char *program, *periodic; /* paths of the built programs */

/* Returns the CPU time of a process if it is a child of `parent`, otherwise 0. */
static u64 child_cpu_ns(const char *pid, pid_t parent)
{
	unsigned long long ran = 0;
	char path[300], line[512] = "";
	FILE *stream;
	int ppid = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	stream = fopen(path, "r");
	if (stream && fgets(line, sizeof(line), stream) && strrchr(line, ')'))
		sscanf(strrchr(line, ')'), ") %*c %d", &ppid);
	if (stream)
		fclose(stream);
	if (ppid != parent)
		return 0;
	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	stream = fopen(path, "r");
	if (stream && fscanf(stream, "%llu", &ran) != 1)
		ran = 0;
	if (stream)
		fclose(stream);
	return ran;
}

static u64 nr_children_with(pid_t parent, u64 cpu_ns)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	u64 nr = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		nr += child_cpu_ns(entry->d_name, parent) >= cpu_ns;
	closedir(dir);
	return nr;
}

/* CPU time of all children that ended, and of their children. */
static double children_cpu_seconds(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Runs until each hog has used 0.2 s of CPU time. */
static void test_hogs_report_their_cpu_time(void **state)
{
	const struct place *place = *state;
	double before = children_cpu_seconds(), cpu_seconds, work;
	pid_t pid = START(place, program, "hogs", "2");

	for (int i = 0; i < HANG_SECONDS * 100 && nr_children_with(pid, NSEC_PER_SEC / 5) < 2; i++)
		usleep(10000);
	kill(pid, SIGTERM);
	assert_int_equal(run_finish(pid), 0);
	assert_true(output_number(place, "processes") == 2);
	cpu_seconds = output_number(place, "cpu_seconds");
	assert_true(cpu_seconds >= 0.4);
	assert_true(cpu_seconds <= children_cpu_seconds() - before + 0.001);
	/* In milliseconds; interrupts take a part of the time. */
	work = output_number(place, "work");
	assert_true(work >= 40 && work <= cpu_seconds * 1000 + 1);
}

static void test_forkstorm_reports_its_cpu_time(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, program, "forkstorm", "20", "--seconds", "0.5"), 0);
	assert_true(output_number(place, "processes") + output_number(place, "skipped") == 10);
	assert_true(output_number(place, "work") == output_number(place, "processes"));
	/* Between 5 and 50 ms each; 26 on average for this seed. */
	assert_true(output_number(place, "cpu_seconds") >= 0.02 * output_number(place, "work"));
}

/* 10 turns are due; a busy machine may skip some. */
static void test_periodic_reports_its_turns(void **state)
{
	const struct place *place = *state;
	double turns;

	assert_int_equal(RUN(place, periodic, "--work-us", "1000", "--period-us", "20000",
			     "--seconds", "0.2"),
			 0);
	turns = output_number(place, "turns");
	assert_true(turns >= 1 && turns <= 10);
	/* The first of these keys belongs to the wakeups. */
	assert_true(output_number(place, "p99_ms") <= output_number(place, "max_ms"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACED(test_hogs_report_their_cpu_time),
		PLACED(test_forkstorm_reports_its_cpu_time),
		PLACED(test_periodic_reports_its_turns),
	};

	if (argc != 3)
		return 2;
	program = argv[1];
	periodic = argv[2];
	return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}
