/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All commands, in the order of --help and zernel(1). */
#include <stdlib.h>
#include "cli/command.h"
#include "cli/result.h"

static int run_version(struct command_call *call)
{
	const struct result_field fields[] = { { "version", ZERNEL_VERSION }, {} };

	if (command_next(call) != -1 || command_operands(call, 0, 0) < 0)
		return COMMAND_MISUSED;
	if (call->json)
		return result_print(fields) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	puts("zernel " ZERNEL_VERSION);
	return EXIT_SUCCESS;
}

const struct command command_version = {
	.name = "version",
	.help = "print the version of this program",
	.run = run_version,
};

/* clang-format off */
static const struct command *const commands[] = {
	&command_status,
	&command_top,
	&command_why,
	&command_hang,
	&command_memory,
	&command_jobs,
	&command_ab,
	&command_scheduler,
	&command_record,
	&command_replay,
	&command_export,
	&command_doctor,
	&command_config,
	&command_procdb,
	&command_serve,
	&command_demo,
	&command_version,
	NULL,
};
/* clang-format on */

static const struct command *const hidden[] = { &command_complete, NULL };

const struct command command_zernel = {
	.name = "zernel",
	.operands = "COMMAND",
	.help = "watch ML jobs, explain idle GPUs and control the Zernel scheduler",
	.commands = commands,
	.hidden = hidden,
};
