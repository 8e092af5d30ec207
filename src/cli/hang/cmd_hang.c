/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel hang: takes a snapshot, says which rank the others wait for, and where that rank is. */
#include "cli/answer.h"
#include "cli/hang/hang_print.h"
#include "cli/hang/hang_stacks.h"

static int answer(const struct snapshot *snapshot, const struct answer_call *call)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;
	CLEANUP(stacks_done) struct stacks stacks = {};
	int err = hang_new(snapshot, call->who, &hang);

	if (err < 0)
		return err;
	hang_stacks_ask(&stacks, call->socket, hang);
	return hang_print(hang, call->json, &call->term);
}

static int run(struct command_call *call)
{
	return answer_run(call, answer, "cannot compare the ranks");
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
