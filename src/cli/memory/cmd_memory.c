/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel memory: takes a snapshot and says who holds the memory of the GPUs. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/memory/memory_print.h"

#define EXIT_NOBODY 3

static int run(struct command_call *call)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const struct term term = term_open(stdout, call->colour);
	const char *socket;
	int err;

	if (command_socket(call, 1, &socket) < 0)
		return COMMAND_MISUSED;
	if (ask_snapshot(socket, &snapshot) < 0)
		return EXIT_FAILURE;
	err = memory_print(snapshot, call->argv[optind], call->json, &term);
	if (err == -ENOENT)
		return EXIT_NOBODY;
	if (err < 0)
		log_error("cannot print the memory: %s", strerror(-err));
	return err < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
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
