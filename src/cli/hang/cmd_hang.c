/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel hang: takes a snapshot, says which rank the others wait for, and where that rank is. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cli/answer.h"
#include "cli/hang/hang_print.h"
#include "cli/hang/hang_stacks.h"

static int answer(struct command_call *call, const char *socket, const struct snapshot *snapshot)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;
	CLEANUP(hang_stacks_done) struct hang_stacks stacks = {};
	const struct term term = term_open(stdout, call->colour);
	int err = hang_new(snapshot, call->argv[optind], &hang);

	if (err < 0)
		return err;
	hang_stacks_ask(&stacks, socket, hang);
	return hang_print(hang, call->json, &term);
}

static int run(struct command_call *call)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const char *socket;
	int err;

	if (command_socket(call, 1, &socket) < 0)
		return COMMAND_MISUSED;
	if (ask_snapshot(socket, &snapshot) < 0)
		return EXIT_FAILURE;
	err = answer(call, socket, snapshot);
	if (err == -ENOENT)
		return EXIT_NOBODY;
	if (err < 0)
		log_error("cannot compare the ranks: %s", strerror(-err));
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option options[] = { OPTION_SOCKET, {} };
static const struct command_status statuses[] = {
	STATUS_SUCCESS,
	STATUS_FAILURE,
	STATUS_USAGE,
	{ EXIT_NOBODY, "no matching job has ranks whose collectives are followed" },
	{ .help = NULL },
};

const struct command command_hang = {
	.name = "hang",
	.operands = "[PID|JOB]",
	.completion = COMPLETE_JOB,
	.help = "name the rank that the other ranks wait for",
	.description =
		"Compares the ranks of each job on this node by the numbers of their NCCL and "
		"RCCL\n"
		"collectives. Names a rank that has not entered a collective in which others "
		"wait,\n"
		"what its launching thread does and where; ranks that disagree on operation or "
		"bytes;\n"
		"and a rank that enters late. PID selects the job of a process. JOB is a job name "
		"or a\n"
		"cgroup, as zernel status shows them. Without an operand, all jobs are compared.",
	.options = options,
	.statuses = statuses,
	.run = run,
};
