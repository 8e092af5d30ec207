/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel status: what zerneld knows, on one screen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/status.h"

static int run(const struct command *command, int argc, char **argv)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *snapshot = NULL;
	struct common_options options;
	CLEANUP_FREE char *text = NULL;
	struct term term;

	if (command_common(command, argc, argv, &options) < 0)
		return COMMAND_MISUSED;
	if (options.json)
		return ask_snapshot_text(options.socket, &text) < 0 || puts(text) < 0
			       ? EXIT_FAILURE
			       : EXIT_SUCCESS;
	if (ask_snapshot(options.socket, &snapshot) < 0)
		return EXIT_FAILURE;
	term = term_open(stdout);
	return status_print(snapshot, &term) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct command_option command_options[] = { OPTION_JSON, OPTION_SOCKET, {} };

const struct command command_status = {
	.name = "status",
	.help = "what zerneld knows, on one screen",
	.description =
		"Scheduler, jobs, processes with rank, phase and threads by role, GPUs, what was\n"
		"learned, what was lost and what Zernel itself takes. --json gives the whole\n"
		"snapshot.",
	.options = command_options,
	.run = run,
};
