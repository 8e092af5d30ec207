/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/command.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "ipc/protocol.h"

#define OPTIONS_MAX  20
#define NAME_MAX_LEN 64
/* Larger than any character: such options have no short form. */
#define KEY_COLOUR   0x100

/* "+": options of a group end at the first word, its command. ":": getopt prints no messages. */
#define SHORT_OPTIONS	    ":jhV"
#define SHORT_OPTIONS_GROUP "+:jhV"

const struct command_option command_common_options[] = {
	{ "json", 'j', NULL, "print the result as JSON" },
	{ "color", KEY_COLOUR, "WHEN", "use color: auto, always or never (default: auto)",
	  COMPLETE_COLOUR },
	{ "help", 'h', NULL, "print this text and exit" },
	{ "version", 'V', NULL, "print the version and exit" },
	{},
};

static const struct command_option *find_option(const struct command_option *row, int key)
{
	for (; row && row->name; row++)
		if (row->key == key)
			return row;
	return NULL;
}

char command_option_letter(const struct command_option *option)
{
	bool is_common = find_option(command_common_options, option->key) == option;

	return is_common && option->key < KEY_COLOUR ? (char)option->key : '\0';
}

static size_t add_options(struct option *options, size_t nr, const struct command_option *row)
{
	for (; row && row->name && nr < OPTIONS_MAX; row++)
		options[nr++] = (struct option){
			.name = row->name,
			.has_arg = row->argument ? required_argument : no_argument,
			.val = row->key,
		};
	return nr;
}

int command_misuse(struct command_call *call, const char *format, ...)
{
	CLEANUP_FREE char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	log_error("%s. Try '%s --help'.", text ? text : format, call->name);
	return -EINVAL;
}

/* optopt is the letter of a short option, or the key of a long option that takes no argument. */
static void tell_invalid_option(struct command_call *call, int key)
{
	const char *word = call->argv[optind - 1];
	const struct command_option *row = find_option(call->command->options, optopt);

	if (!row)
		row = find_option(command_common_options, optopt);
	if (key == ':' && row)
		command_misuse(call, "option '--%s' for '%s' needs an argument: %s", row->name,
			       call->name, row->argument);
	else if (row && !row->argument && strncmp(word, "--", 2) == 0 && strchr(word, '='))
		command_misuse(call, "option '--%s' for '%s' takes no argument, but got '%s'",
			       row->name, call->name, strchr(word, '=') + 1);
	else if (optopt)
		command_misuse(call, "unknown option '-%c' for '%s'", optopt, call->name);
	else
		command_misuse(call, "unknown option '%s' for '%s'", word, call->name);
}

int command_next(struct command_call *call)
{
	const char *letters = call->command->commands ? SHORT_OPTIONS_GROUP : SHORT_OPTIONS;
	struct option options[OPTIONS_MAX + 1] = {};
	size_t nr = add_options(options, 0, call->command->options);

	add_options(options, nr, command_common_options);
	for (;;) {
		int key = getopt_long(call->argc, call->argv, letters, options, NULL);

		switch (key) {
		case 'j': call->json = true; continue;
		case 'h': call->wants_help = true; return '?';
		case 'V': call->wants_version = true; return '?';
		case KEY_COLOUR:
			if (term_parse_colour(optarg, &call->colour) == 0)
				continue;
			command_misuse(call, "--color must be auto, always or never, not '%s'",
				       optarg);
			return '?';
		case ':':
		case '?': tell_invalid_option(call, key); return '?';
		default: call->option = find_option(call->command->options, key); return key;
		}
	}
}

int command_operands(struct command_call *call, int least, int most)
{
	int nr = call->argc - optind;

	if (nr > most)
		return command_misuse(call, "unexpected operand '%s' for '%s'",
				      call->argv[optind + most], call->name);
	if (nr < least)
		return command_misuse(call, "missing operand for '%s': %s", call->name,
				      call->command->operands);
	return 0;
}

int command_number(struct command_call *call, u64 least, u64 most, u64 *ret)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(optarg, &end, 10);
	if (errno || !isdigit((unsigned char)*optarg) || *end || value < least || value > most)
		return command_misuse(call, "--%s must be a number from %llu to %llu, not '%s'",
				      call->option->name, least, most, optarg);
	*ret = value;
	return 0;
}

int command_decimal(struct command_call *call, double least, double most, double *ret)
{
	char *end;
	double value = strtod(optarg, &end);

	/* The negated comparison also rejects NaN. */
	if (end == optarg || *end || !(value >= least && value <= most))
		return command_misuse(call, "--%s must be a number from %.15g to %.15g, not '%s'",
				      call->option->name, least, most, optarg);
	*ret = value;
	return 0;
}

int command_socket(struct command_call *call, int operands_max, const char **ret)
{
	const char *socket = PROTOCOL_SOCKET;
	int option;

	while ((option = command_next(call)) != -1) {
		if (option != 's')
			return -EINVAL;
		socket = optarg;
	}
	if (command_operands(call, 0, operands_max) < 0)
		return -EINVAL;
	*ret = socket;
	return 0;
}

static const struct command *find_command(const struct command *const *commands, const char *name)
{
	for (; commands && *commands; commands++)
		if (strcmp((*commands)->name, name) == 0)
			return *commands;
	return NULL;
}

static int run_call(struct command_call *call);

/* Common options before the name of a command apply to that command. */
static int run_group(struct command_call *call)
{
	const struct command *command = NULL;
	char name[NAME_MAX_LEN];
	struct command_call inner = *call;

	if (command_next(call) != -1)
		return COMMAND_MISUSED;
	if (optind == call->argc) {
		command_help(stderr, call->command, call->name);
		return COMMAND_MISUSED;
	}
	inner.argc = call->argc - optind;
	inner.argv = call->argv + optind;
	inner.json = call->json;
	inner.colour = call->colour;
	command = find_command(call->command->commands, inner.argv[0]);
	if (!command)
		command = find_command(call->command->hidden, inner.argv[0]);
	if (!command) {
		command_misuse(call, "unknown command '%s' for '%s'", inner.argv[0], call->name);
		return COMMAND_MISUSED;
	}
	snprintf(name, sizeof(name), "%s %s", call->name, command->name);
	inner.command = command;
	inner.name = name;
	return run_call(&inner);
}

static int run_call(struct command_call *call)
{
	const struct command *command = call->command;
	int status;

	optind = 0; /* restarts getopt with new words */
	status = command->commands ? run_group(call) : command->run(call);
	if (call->wants_help) {
		command_help(stdout, command, call->name);
		return EXIT_SUCCESS;
	}
	if (call->wants_version) {
		puts("zernel " ZERNEL_VERSION);
		return EXIT_SUCCESS;
	}
	if (status != COMMAND_MISUSED)
		return status;
	return command->misuse_status ? command->misuse_status : EXIT_USAGE;
}

int command_run(const struct command *command, int argc, char **argv)
{
	struct command_call call = {
		.command = command,
		.name = command->name,
		.argc = argc,
		.argv = argv,
	};

	return run_call(&call);
}
