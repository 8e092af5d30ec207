/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel ab: measures on a running job whether the scheduler helps it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ab/ab.h"
#include "cli/command.h"
#include "ipc/protocol.h"

#define MINUTES_DEFAULT 5
#define MINUTES_MAX	(24 * 60)
#define BOUND_DEFAULT	1.5
#define BOUND_MAX	100

#define EXIT_TOO_SLOW 3
#define EXIT_EARLY    4
/* As in shells. */
#define EXIT_SIGNAL   128

static int parse(struct command_call *call, struct ab_options *ret)
{
	struct ab_options options = { .socket = PROTOCOL_SOCKET };
	double minutes = MINUTES_DEFAULT, bound = BOUND_DEFAULT;
	int option, err = 0;

	if (getrandom(&options.seed, sizeof(u32), 0) < 0) {
		log_error("cannot choose a seed: %s", strerror(errno));
		return -errno;
	}
	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 'm': err = command_decimal(call, 0.01, MINUTES_MAX, &minutes); break;
		case 'b': err = command_decimal(call, 1, BOUND_MAX, &bound); break;
		case 'e': err = command_number(call, 0, ~0ULL, &options.seed); break;
		case 's': options.socket = optarg; break;
		default: err = -EINVAL; break;
		}
	}
	if (err < 0 || command_operands(call, 1, 1) < 0)
		return -EINVAL;
	options.who = call->argv[optind];
	options.total_ns = (u64)(minutes * 60 * NSEC_PER_SEC);
	options.bound_permille = (u32)(bound * 1000);
	*ret = options;
	return 0;
}

static int exit_status(const struct ab_report *report)
{
	switch (report->end) {
	case AB_COMPLETE: return report->restored ? EXIT_SUCCESS : EXIT_FAILURE;
	case AB_TOO_SLOW: return EXIT_TOO_SLOW;
	case AB_INTERRUPTED: return EXIT_SIGNAL + report->signal;
	default: return EXIT_EARLY;
	}
}

static int run(struct command_call *call)
{
	CLEANUP_FREE struct ab_report *report = calloc(1, sizeof(*report));
	struct ab_options options;
	struct term progress, term;
	int err;

	if (parse(call, &options) < 0)
		return COMMAND_MISUSED;
	progress = term_open(stderr, call->colour);
	term = term_open(stdout, call->colour);
	if (!report) {
		log_error("out of memory");
		return EXIT_FAILURE;
	}
	err = ab_run(&options, &progress, report);
	if (err < 0)
		return err == -EINTR ? EXIT_SIGNAL + report->signal : EXIT_FAILURE;
	err = call->json ? ab_print_json(report, stdout) : ab_print(report, &term);
	return err < 0 ? EXIT_FAILURE : exit_status(report);
}

static const struct command_option command_options[] = {
	{ "minutes", 'm', "N", "measure for N minutes; can be a fraction (default: 5)" },
	{ "bound", 'b', "X", "stop when a step takes X times as long as before (default: 1.5)" },
	{ "seed", 'e', "N", "seed of the random order of windows (default: random, printed)" },
	OPTION_SOCKET,
	{},
};
static const struct command_status statuses[] = {
	{ EXIT_SUCCESS, "success; the comparison is complete, with any verdict" },
	STATUS_FAILURE,
	STATUS_USAGE,
	{ EXIT_TOO_SLOW, "stopped: a step took longer than --bound allows" },
	{ EXIT_EARLY,
	  "stopped: the job or zerneld ended, or another client switched the scheduler" },
	{ EXIT_SIGNAL, "interrupted; the status is 128 plus the number of the signal" },
	{ .help = NULL },
};

const struct command command_ab = {
	.name = "ab",
	.operands = "PID|JOB",
	.completion = COMPLETE_JOB,
	.help = "measure whether the scheduler helps a job",
	.description =
		"Switches the scheduler on and off in windows of random order while the job "
		"runs.\n"
		"Compares the mean and the p99 of the step time, and the busy share of the "
		"GPU, with 95 %\n"
		"confidence intervals. Stops immediately if the job gets slower than --bound "
		"allows. Restores\n"
		"the initial state of the scheduler when it ends, unless the kernel ejected "
		"the scheduler\n"
		"or another client switched it. Switching affects all jobs of the machine.",
	.options = command_options,
	.statuses = statuses,
	.run = run,
};
