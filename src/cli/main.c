/* SPDX-License-Identifier: GPL-2.0-only */
/* zernel: the command line. Each command is a row here and a file of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/command.h"

static int cmd_version(int argc, char **argv)
{
	puts("zernel " ZERNEL_VERSION);
	return EXIT_SUCCESS;
}

static const struct command commands[] = {
	{ "procdb", "COMMAND", "what was learned of programs", cmd_procdb },
	{ "serve", "[OPTION...]", "metrics and snapshots over HTTP and WebSocket", cmd_serve },
	{ "version", "", "the version of this program", cmd_version },
	{},
};

static void usage(FILE *out, const struct command *table, const char *what)
{
	fprintf(out, "Usage: %s COMMAND\n\n", what);
	for (const struct command *command = table; command->name; command++)
		fprintf(out, "  %-8s %-12s %s\n", command->name, command->arguments, command->help);
}

int command_run(const struct command *table, const char *what, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (const struct command *command = table; command->name; command++)
		if (strcmp(command->name, name) == 0)
			return command->run(argc - 1, argv + 1);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		usage(stdout, table, what);
		return EXIT_SUCCESS;
	}
	usage(stderr, table, what);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	return command_run(commands, "zernel", argc, argv);
}
