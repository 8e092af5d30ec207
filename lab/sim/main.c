// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Simulates the scheduler on machines that the lab does not have. The scheduler is compiled from
 * its own sources, against a model of the kernel (model.h).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim/count.h"
#include "sim/load.h"
#include "sim/report.h"

#define BEGIN_NS (10 * NSEC_PER_SEC) /* no time is 0, which means "never" to the scheduler */

struct options {
	u64 seed;
	u32 milliseconds; /* 0: that of the row */
};

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: sim [--seed N] [--ms N] [ROW...]\n\n"
		"Simulate the scheduler and print what its operations cost and how long tasks "
		"wait.\n\n"
		"  --seed N  seed of all random numbers; equal seeds give equal output (default: "
		"1)\n"
		"  --ms N    simulate N ms after the warm-up, instead of the time of the row\n\n"
		"Rows (default: all):\n");
	for (u32 i = 0; i < nr_rows; i++)
		fprintf(to,
			"  %-9s %u CPUs, %u caches, %u hogs, %u jobs of %u ranks with %u loaders\n",
			rows[i].name, rows[i].cpus, rows[i].llcs, rows[i].hogs, rows[i].jobs,
			rows[i].ranks, rows[i].loaders);
}

static void simulate(const struct row *row, const struct options *options)
{
	u64 length =
		(options->milliseconds ? options->milliseconds : row->milliseconds) * NSEC_PER_MSEC;

	machine.now = BEGIN_NS;
	cpus_make(row->cpus, row->llcs, row->nodes);
	if (zernel.init())
		die("ops.init failed");
	load_make(row, options->seed);
	events_run(BEGIN_NS + row->warmup_ms * NSEC_PER_MSEC);
	count_reset();
	load_reset();
	dsqs_most_locked();
	events_run(machine.now + length);
	load_end();
	report_print(length);
}

/* The scheduler has its state in static memory, so each row is a process of its own. */
static bool simulate_apart(const struct row *row, const struct options *options)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork failed");
	if (!pid) {
		simulate(row, options);
		exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static const struct row *row_find(const char *name)
{
	for (u32 i = 0; i < nr_rows; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static bool parse(int argc, char **argv, struct options *ret_options)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "ms", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		switch (option) {
		case 's': ret_options->seed = strtoull(optarg, NULL, 10); break;
		case 'm': ret_options->milliseconds = (u32)strtoul(optarg, NULL, 10); break;
		case 'h': usage(stdout); exit(0);
		default: return false;
		}
	}
	for (int i = optind; i < argc; i++) {
		if (row_find(argv[i]))
			continue;
		fprintf(stderr, "sim: unknown row '%s'; see --help\n", argv[i]);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options options = { .seed = 1 };
	bool is_good = true;

	if (!parse(argc, argv, &options))
		return 2;
	for (int i = optind; i < argc; i++)
		is_good &= simulate_apart(row_find(argv[i]), &options);
	for (u32 i = 0; optind == argc && i < nr_rows; i++)
		is_good &= simulate_apart(&rows[i], &options);
	return is_good ? 0 : 1;
}
