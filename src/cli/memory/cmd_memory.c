/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel memory: takes a snapshot and says who holds the memory of the GPUs. */
#include "cli/answer.h"
#include "cli/memory/memory_print.h"
#include "cli/memory/memory_stacks.h"

static int answer(const struct snapshot *snapshot, const struct answer_call *call)
{
	CLEANUP(memory_free_cleanup) struct memory_report *report = NULL;
	CLEANUP(stacks_done) struct stacks stacks = {};
	int err = memory_new(snapshot, call->who, &report);

	if (err < 0)
		return err;
	memory_stacks_ask(&stacks, call->socket, report);
	return memory_print(report, call->json, &call->term);
}

static int run(struct command_call *call)
{
	return answer_run(call, answer, "cannot print the memory");
}

static const struct command_option options[] = { OPTION_SOCKET, {} };
static const struct command_status statuses[] = {
	STATUS_SUCCESS,	  STATUS_FAILURE,
	STATUS_USAGE,	  { EXIT_NOBODY, "no matching process holds GPU memory" },
	{ .help = NULL },
};

const struct command command_memory = {
	.name = "memory",
	.operands = "[PID|JOB]",
	.completion = COMPLETE_JOB,
	.help = "list the GPU memory of processes, and explain out-of-memory errors",
	.description = "Lists what each process holds of each GPU. Explains the last "
		       "out-of-memory error of\n"
		       "PyTorch in each process. For an ended job, zernel why --ended explains it.",
	.options = options,
	.statuses = statuses,
	.run = run,
};
