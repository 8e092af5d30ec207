/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel why: looks twice, and says why the GPU was idle in between. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/why/why_print.h"

#define SECONDS_DEFAULT 5
#define SECONDS_MAX	3600
#define EXIT_NOBODY	3
#define PROGRESS_NS	(100 * NSEC_PER_MSEC)

struct request {
	struct why_options options;
	const char *socket;
	enum colour colour;
	u64 seconds;
	bool watch;
};

static int parse(struct command_call *call, struct request *ret)
{
	struct request request = { .socket = PROTOCOL_SOCKET, .seconds = SECONDS_DEFAULT };
	int option, err = 0;

	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 's': request.socket = optarg; break;
		case 'n': err = command_number(call, 1, SECONDS_MAX, &request.seconds); break;
		case 'w': request.watch = true; break;
		default: err = -EINVAL; break;
		}
	}
	if (err < 0 || command_operands(call, 0, 1) < 0)
		return -EINVAL;
	request.options.who = call->argv[optind];
	request.options.json = call->json;
	request.colour = call->colour;
	*ret = request;
	return 0;
}

static void wait_seconds(u64 seconds, enum colour colour)
{
	const struct timespec nap = { .tv_nsec = PROGRESS_NS };
	const u64 whole_ns = seconds * NSEC_PER_SEC;
	const struct term term = term_open(stderr, colour);

	for (u64 ns = 0; ns < whole_ns; ns += PROGRESS_NS) {
		progress_show(&term, ns, whole_ns, "watching for %llu s", seconds);
		nanosleep(&nap, NULL);
	}
	progress_end(&term);
}

/* Between the snapshot that is there and a new one, which takes its place. */
static int answer(const struct request *request, struct snapshot **snapshot)
{
	const struct term term = term_open(stdout, request->colour);
	struct snapshot *after;
	int err;

	wait_seconds(request->seconds, request->colour);
	err = ask_snapshot(request->socket, &after);
	if (err < 0)
		return err;
	/* On a terminal the former answer makes room. */
	if (request->watch && term.height && !request->options.json)
		fputs("\033[H\033[J", stdout);
	err = why_print(*snapshot, after, &request->options, &term);
	if (err < 0 && err != -ENOENT)
		log_error("cannot tell: %s", strerror(-err));
	if (request->watch && !term.height && !request->options.json)
		putchar('\n');
	fflush(stdout);
	snapshot_free(*snapshot);
	*snapshot = after;
	return ferror(stdout) ? -EIO : err;
}

static int run(struct command_call *call)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	struct request request;
	int err;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	err = ask_snapshot(request.socket, &snapshot);
	if (err < 0)
		return EXIT_FAILURE;
	do
		err = answer(&request, &snapshot);
	while (request.watch && (err == 0 || err == -ENOENT));
	if (err == -ENOENT)
		return EXIT_NOBODY;
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option options[] = {
	{ "seconds", 'n', "N", "how long to watch (5)" },
	{ "watch", 'w', NULL, "again and again, until it is interrupted" },
	OPTION_SOCKET,
	{},
};
static const struct command_status statuses[] = {
	STATUS_SUCCESS,	  STATUS_FAILURE,
	STATUS_USAGE,	  { EXIT_NOBODY, "no matching GPU process, or not enough data yet" },
	{ .help = NULL },
};

const struct command command_why = {
	.name = "why",
	.operands = "[PID|JOB]",
	.completion = COMPLETE_JOB,
	.help = "why the GPU is idle, and who is to blame",
	.description =
		"Watches for some seconds and says why the GPU was idle meanwhile: a sentence, "
		"the\n"
		"causes with their share and who is to blame, and what follows from that. Without\n"
		"PID or JOB (a name or a cgroup, as zernel status shows them) for all jobs.",
	.options = options,
	.statuses = statuses,
	.run = run,
};
