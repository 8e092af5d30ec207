/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel ab: whether the scheduler helps a job, found out on the job itself. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/random.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ab/ab.h"
#include "cli/command.h"
#include "ipc/protocol.h"

#define MINUTES_DEFAULT 5
#define MINUTES_MAX	(24 * 60)
#define BOUND_DEFAULT	1500
#define BOUND_MAX	100

#define EXIT_TOO_SLOW 3
#define EXIT_EARLY    4
/* As shells have it. */
#define EXIT_SIGNAL   128

struct request {
	struct ab_options options;
	bool json;
};

/* A number in a range, of which there are `unit`. */
static int parse_number(const char *text, double least, double most, double unit, u64 *ret)
{
	char *end;
	double value = strtod(text, &end);

	/* What is no number is not in the range either. */
	if (end == text || *end || !(value >= least && value <= most))
		return -EINVAL;
	*ret = (u64)(value * unit);
	return 0;
}

static int parse_seed(const char *text, u64 *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || end == text || *end || *text == '-' ? -EINVAL : 0;
}

static int parse(const struct command *command, int argc, char **argv, struct request *ret)
{
	struct request request = {
		.options.socket = PROTOCOL_SOCKET,
		.options.total_ns = MINUTES_DEFAULT * 60 * NSEC_PER_SEC,
	};
	u64 bound = BOUND_DEFAULT;
	int option, err = 0;

	if (getrandom(&request.options.seed, sizeof(u32), 0) < 0)
		return -errno;
	while (err == 0 && (option = command_next(command, argc, argv)) != -1) {
		switch (option) {
		case 'm':
			err = parse_number(optarg, 0.01, MINUTES_MAX, 60e9,
					   &request.options.total_ns);
			break;
		case 'b': err = parse_number(optarg, 1, BOUND_MAX, 1000, &bound); break;
		case 'e': err = parse_seed(optarg, &request.options.seed); break;
		case 'j': request.json = true; break;
		case 's': request.options.socket = optarg; break;
		default: err = -EINVAL; break;
		}
	}
	if (err < 0 || argc - optind != 1)
		return -EINVAL;
	request.options.who = argv[optind];
	request.options.bound_permille = (u32)bound;
	*ret = request;
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

static int run(const struct command *command, int argc, char **argv)
{
	CLEANUP_FREE struct ab_report *report = calloc(1, sizeof(*report));
	const struct term progress = term_open(stderr), term = term_open(stdout);
	struct request request;
	int err;

	if (parse(command, argc, argv, &request) < 0)
		return COMMAND_MISUSED;
	if (!report) {
		log_error("no memory");
		return EXIT_FAILURE;
	}
	err = ab_run(&request.options, &progress, report);
	if (err < 0)
		return err == -EINTR ? EXIT_SIGNAL + report->signal : EXIT_FAILURE;
	err = request.json ? ab_print_json(report, stdout) : ab_print(report, &term);
	return err < 0 ? EXIT_FAILURE : exit_status(report);
}

static const struct command_option options[] = {
	{ "minutes", 'm', "N", "how long it takes (5); may be a fraction" },
	{ "bound", 'b', "X", "stop when a step takes X times as long as before (1.5)" },
	{ "seed", 'e', "N", "of the order of windows; a printed one by default" },
	OPTION_JSON,
	OPTION_SOCKET,
	{},
};
static const struct command_status statuses[] = {
	{ EXIT_SUCCESS, "it was measured, whatever the verdict" },
	{ EXIT_FAILURE, "it failed, and the reason was told" },
	{ EXIT_USAGE, "the command line makes no sense" },
	{ EXIT_TOO_SLOW, "stopped: the job got slower than the bound allows" },
	{ EXIT_EARLY, "the job or zerneld ended, or the scheduler was switched by somebody else" },
	{ .help = NULL },
};

const struct command command_ab = {
	.name = "ab",
	.operands = "PID|JOB",
	.help = "whether the scheduler helps a job",
	.description = "Switches the scheduler on and off in windows of random order while the job "
		       "runs, and\n"
		       "compares step time, its p99 and GPU busy, with 95 % intervals. It stops at "
		       "once when\n"
		       "the job gets slower than the bound allows, and leaves the scheduler as it "
		       "was found,\n"
		       "whichever way it ends. The state concerns the whole machine.",
	.options = options,
	.statuses = statuses,
	.run = run,
};
