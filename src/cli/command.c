/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/command.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "ipc/protocol.h"

#define OPTIONS_MAX  16
#define NAME_MAX_LEN 64

static const struct command_status usual_statuses[] = {
	{ EXIT_SUCCESS, "it was done" },
	{ EXIT_FAILURE, "it failed, and the reason was told" },
	{ EXIT_USAGE, "the command line makes no sense" },
	{ .help = NULL },
};

const struct command_status *command_statuses(const struct command *command)
{
	return command->statuses ? command->statuses : usual_statuses;
}

int command_next(const struct command *command, int argc, char **argv)
{
	struct option options[OPTIONS_MAX + 1] = {};
	const struct command_option *row = command->options;

	for (size_t i = 0; row && row->name && i < OPTIONS_MAX; i++, row++)
		options[i] = (struct option){
			.name = row->name,
			.has_arg = row->argument ? required_argument : no_argument,
			.val = row->key,
		};
	return getopt_long(argc, argv, "", options, NULL);
}

int command_common(const struct command *command, int argc, char **argv, struct common_options *ret)
{
	struct common_options options = { .socket = PROTOCOL_SOCKET };
	int option;

	while ((option = command_next(command, argc, argv)) != -1) {
		switch (option) {
		case 'j': options.json = true; break;
		case 's': options.socket = optarg; break;
		default: return -EINVAL;
		}
	}
	if (optind != argc)
		return -EINVAL;
	*ret = options;
	return 0;
}

static void print_options(FILE *out, const struct command *command)
{
	const struct command_option *row = command->options;

	fputc('\n', out);
	for (; row && row->name; row++) {
		char text[64];

		snprintf(text, sizeof(text), "--%s %s", row->name,
			 row->argument ? row->argument : "");
		fprintf(out, "  %-22s %s\n", text, row->help);
	}
	fprintf(out, "  %-22s %s\n", "--help", "this text");
}

static void print_statuses(FILE *out, const struct command *command)
{
	fputs("\nExit status:\n", out);
	for (const struct command_status *row = command_statuses(command); row->help; row++)
		fprintf(out, "  %d  %s\n", row->status, row->help);
}

static void print_commands(FILE *out, const struct command *command)
{
	fputc('\n', out);
	for (const struct command *const *each = command->commands; *each; each++)
		fprintf(out, "  %-8s %-12s %s\n", (*each)->name,
			(*each)->operands ? (*each)->operands : "", (*each)->help);
}

void command_help(FILE *out, const struct command *command, const char *name)
{
	fprintf(out, "Usage: %s", name);
	if (command->commands)
		fputs(" COMMAND", out);
	if (command->operands && !command->commands)
		fprintf(out, " %s", command->operands);
	if (!command->commands)
		fputs(" [OPTION...]", out);
	fprintf(out, "\n%c%s.\n", command->help[0] & ~0x20, command->help + 1);
	if (command->description)
		fprintf(out, "\n%s\n", command->description);
	if (command->commands) {
		print_commands(out, command);
		return;
	}
	print_options(out, command);
	print_statuses(out, command);
}

static bool asks_for_help(const struct command *command, int argc, char **argv)
{
	/* Of several words the first is the name of another command, which may know better. */
	int end = command->commands && argc > 2 ? 2 : argc;

	for (int i = 1; i < end && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

static int run_named(const struct command *command, const char *name, int argc, char **argv)
{
	int status = COMMAND_MISUSED;

	if (asks_for_help(command, argc, argv)) {
		command_help(stdout, command, name);
		return EXIT_SUCCESS;
	}
	if (command->run) {
		optind = 1;
		status = command->run(command, argc, argv);
	}
	for (const struct command *const *each = command->commands; argc > 1 && each && *each;
	     each++) {
		char full[NAME_MAX_LEN];

		if (strcmp((*each)->name, argv[1]) != 0)
			continue;
		snprintf(full, sizeof(full), "%s %s", name, argv[1]);
		return run_named(*each, full, argc - 1, argv + 1);
	}
	if (status != COMMAND_MISUSED)
		return status;
	command_help(stderr, command, name);
	return command->misuse_status ? command->misuse_status : EXIT_USAGE;
}

int command_run(const struct command *command, int argc, char **argv)
{
	return run_named(command, command->name, argc, argv);
}
