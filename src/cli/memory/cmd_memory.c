/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel memory: takes a snapshot and says who holds the memory of the GPUs; with --seconds, what
 * PyTorch makes of it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include "abi/usage.h"
#include "cli/answer.h"
#include "cli/memory/memory_print.h"
#include "cli/memory/memory_stacks.h"
#include "cli/memory/memory_usage.h"

/* Without --seconds, *ret_seconds is 0. */
static int parse(struct command_call *call, struct answer_call *ret, u64 *ret_seconds)
{
	int option, err = 0;

	*ret = (struct answer_call){ .socket = PROTOCOL_SOCKET };
	*ret_seconds = 0;
	while (err == 0 && (option = command_next(call)) != -1) {
		switch (option) {
		case 's': ret->socket = optarg; break;
		case 'n': err = command_number(call, 1, USAGE_SECONDS_MAX, ret_seconds); break;
		default: err = -EINVAL; break;
		}
	}
	if (err < 0 || command_operands(call, 0, 1) < 0)
		return -EINVAL;
	ret->who = call->argv[optind];
	ret->json = call->json;
	ret->term = term_open(stdout, call->colour);
	return 0;
}

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
	struct answer_call request;
	u64 seconds;
	int err;

	if (parse(call, &request, &seconds) < 0)
		return COMMAND_MISUSED;
	if (!seconds)
		return answer_ask(&request, answer, "cannot print the memory");
	err = memory_usage(&request, seconds);
	if (err == -ENOENT)
		return EXIT_NOBODY;
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option options[] = {
	{ "seconds", 'n', "N",
	  "watch for N seconds what PyTorch uses of the memory of one process" },
	OPTION_SOCKET,
	{},
};
static const struct command_status statuses[] = {
	STATUS_SUCCESS,
	STATUS_FAILURE,
	STATUS_USAGE,
	{ EXIT_NOBODY, "no matching process holds GPU memory, or PyTorch reported nothing" },
	{ .help = NULL },
};

const struct command command_memory = {
	.name = "memory",
	.operands = "[PID|JOB]",
	.completion = COMPLETE_JOB,
	.help = "list the GPU memory of processes, and explain out-of-memory errors",
	.description = "Lists what each process holds of each GPU. Explains the last "
		       "out-of-memory error of\n"
		       "PyTorch in each process. For an ended job, zernel why --ended explains it. "
		       "With\n"
		       "--seconds, shows how much of the memory of one process PyTorch has "
		       "allocated over time.",
	.options = options,
	.statuses = statuses,
	.run = run,
};
