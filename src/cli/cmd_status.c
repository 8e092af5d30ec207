/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel status: prints the current snapshot on one screen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/status.h"

static int run(struct command_call *call)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	const char *socket;
	struct term term;

	if (command_socket(call, 0, &socket) < 0)
		return COMMAND_MISUSED;
	if (call->json)
		return ask_print_snapshot(socket) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (ask_snapshot(socket, &snapshot) < 0)
		return EXIT_FAILURE;
	term = term_open(stdout, call->colour);
	return status_print(snapshot, &term) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = { OPTION_SOCKET, {} };

const struct command command_status = {
	.name = "status",
	.help = "show the current state of zerneld on one screen",
	.description =
		"Shows the scheduler, jobs, processes with rank, phase and threads by role, GPUs,\n"
		"learned profiles, dropped data, and the CPU time and memory that Zernel uses.",
	.json = "print the whole snapshot as JSON",
	.options = command_options,
	.run = run,
};
