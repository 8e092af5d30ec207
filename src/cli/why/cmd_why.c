/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel why: takes two snapshots and explains why the GPU was idle in between. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/answer.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/memory/memory_stacks.h"
#include "cli/progress.h"
#include "cli/why/why_lines.h"
#include "cli/why/why_print.h"

#define SECONDS_DEFAULT 5
#define SECONDS_MAX	3600
#define PROGRESS_NS	(100 * NSEC_PER_MSEC)

struct request {
	struct why_options options;
	const char *socket;
	enum colour colour;
	u64 seconds;
	bool watch;
	bool ended;
	bool lines;
	enum lines_format format; /* of the lines */
};

/* --lines explains one process once, and its formats are for stacks only. */
static int check(struct command_call *call, const struct request *request)
{
	if (request->format != LINES_TEXT && !request->lines)
		return command_misuse(call, "--folded, --svg and --pprof need --lines");
	if (request->lines && (request->watch || request->ended))
		return command_misuse(call, "--lines cannot be combined with --watch or --ended");
	if (call->json && request->format != LINES_TEXT)
		return command_misuse(call, "--json cannot be combined with another format");
	return command_operands(call, request->ended, 1);
}

static int parse(struct command_call *call, struct request *ret)
{
	struct request request = { .socket = PROTOCOL_SOCKET, .seconds = SECONDS_DEFAULT };
	int option, err = 0;

	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 's': request.socket = optarg; break;
		case 'n': err = command_number(call, 1, SECONDS_MAX, &request.seconds); break;
		case 'w': request.watch = true; break;
		case 'e': request.ended = true; break;
		case 'l': request.lines = true; break;
		case 'f': request.format = LINES_FOLDED; break;
		case 'g': request.format = LINES_SVG; break;
		case 'p': request.format = LINES_PPROF; break;
		default: err = -EINVAL; break;
		}
	}
	if (err < 0 || check(call, &request) < 0)
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

/* Answers for the time from *snapshot to a new snapshot, and replaces *snapshot. */
static int answer(const struct request *request, struct snapshot **snapshot)
{
	const struct term term = term_open(stdout, request->colour);
	struct snapshot *after;
	int err;

	wait_seconds(request->seconds, request->colour);
	err = ask_snapshot(request->socket, &after);
	if (err < 0)
		return err;
	/* On a terminal, clear the previous answer. */
	if (request->watch && term.height && !request->options.json)
		fputs("\033[H\033[J", stdout);
	err = why_print(*snapshot, after, &request->options, &term);
	if (err < 0 && err != -ENOENT)
		log_error("cannot explain the idle time: %s", strerror(-err));
	if (request->watch && !term.height && !request->options.json)
		putchar('\n');
	fflush(stdout);
	snapshot_free(*snapshot);
	*snapshot = after;
	return ferror(stdout) ? -EIO : err;
}

static int answer_ended(const struct request *request)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *ended = NULL;
	CLEANUP(memory_free_cleanup) struct memory_report *memory = NULL;
	CLEANUP(stacks_done) struct stacks stacks = {};
	const struct term term = term_open(stdout, request->colour);
	int err = ask_ended(request->socket, request->options.who, &ended);

	if (err == -ENOENT)
		log_error("no ended job is named %s: run `zernel jobs` to list them",
			  request->options.who);
	if (err < 0)
		return err;
	err = memory_new(ended, NULL, &memory);
	if (err == 0) {
		/* The JSON answer has no stacks. */
		if (!request->options.json)
			memory_stacks_ask(&stacks, request->socket, memory);
		err = why_print_ended(ended, memory, request->options.json, &term);
	}
	if (err < 0 && err != -ENOENT)
		log_error("cannot explain the idle time: %s", strerror(-err));
	return err;
}

static int answer_live(const struct request *request)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	int err = ask_snapshot(request->socket, &snapshot);

	if (err < 0)
		return -EIO;
	do
		err = answer(request, &snapshot);
	while (request->watch && (err == 0 || err == -ENOENT));
	return err;
}

static int answer_lines(const struct request *request)
{
	bool json = request->options.json;

	return why_lines(&(struct why_lines_request){
		.socket = request->socket,
		.who = request->options.who,
		.seconds = request->seconds,
		.format = json ? LINES_JSON : request->format,
		.colour = request->colour,
	});
}

static int answer_any(const struct request *request)
{
	if (request->lines)
		return answer_lines(request);
	return request->ended ? answer_ended(request) : answer_live(request);
}

static int run(struct command_call *call)
{
	struct request request;
	int err;

	if (parse(call, &request) < 0)
		return COMMAND_MISUSED;
	err = answer_any(&request);
	if (err == -ENOENT)
		return EXIT_NOBODY;
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option options[] = {
	{ "seconds", 'n', "N", "watch for N seconds (default: 5)" },
	{ "watch", 'w', NULL, "repeat until interrupted" },
	{ "ended", 'e', NULL, "explain the whole life of the ended job JOB; does not watch" },
	{ "lines", 'l', NULL, "show the code in which the GPU was idle, by line, of one process" },
	{ "folded", 'f', NULL, "with --lines: print each stack and its nanoseconds" },
	{ "svg", 'g', NULL, "with --lines: write a flame graph as SVG" },
	{ "pprof", 'p', NULL, "with --lines: write a profile for pprof" },
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
	.help = "explain why the GPU is idle",
	.description = "Watches for some seconds. Then prints one sentence that says why the GPU "
		       "was idle,\n"
		       "a table of causes with their shares and the tasks or disks responsible, "
		       "and advice.\n"
		       "PID selects a process. JOB is a job name or a cgroup, as zernel status "
		       "shows them.\n"
		       "Without an operand, the answer covers all jobs. With --ended, JOB is an "
		       "ended job.\n"
		       "With --lines, it gives the time in each line of code in points: percent of "
		       "the time.",
	.options = options,
	.statuses = statuses,
	.run = run,
};
