/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints --help from the tables of commands. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "cli/command.h"

#define WIDTH	      80
#define HELP_COLUMN   24 /* of options */
#define STATUS_COLUMN 7
#define NAME_COLUMN   21

static const struct command_status usual_statuses[] = {
	STATUS_SUCCESS,
	STATUS_FAILURE,
	STATUS_USAGE,
	{ .help = NULL },
};

const struct command_status *command_statuses(const struct command *command)
{
	return command->statuses ? command->statuses : usual_statuses;
}

const char *command_option_help(const struct command *command, const struct command_option *option)
{
	return option->key == 'j' && command->json ? command->json : option->help;
}

/* Wraps words at WIDTH. All lines start at `column`; the cursor is already there. */
static void print_wrapped(FILE *out, int column, const char *text)
{
	int at = column;

	for (;;) {
		int length;

		text += strspn(text, " \n");
		length = (int)strcspn(text, " \n");
		if (length == 0)
			break;
		if (at > column && at + 1 + length > WIDTH) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		}
		if (at > column) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", length, text);
		at += length;
		text += length;
	}
	fputc('\n', out);
}

static void print_sentence(FILE *out, int column, const char *text)
{
	char sentence[512];

	snprintf(sentence, sizeof(sentence), "%c%s.", toupper((unsigned char)*text), text + 1);
	print_wrapped(out, column, sentence);
}

/* Prints the label left of its text, or above the text if the label is too long. */
static void print_row(FILE *out, int column, const char *label, const char *text)
{
	int length = fprintf(out, "  %s", label);

	if (length + 1 > column)
		fprintf(out, "\n%*s", column, "");
	else
		fprintf(out, "%*s", column - length, "");
	print_wrapped(out, column, text);
}

static void print_options(FILE *out, const struct command *command,
			  const struct command_option *row)
{
	for (; row && row->name; row++) {
		char label[64], letter = command_option_letter(row);
		int length = letter ? snprintf(label, sizeof(label), "-%c, ", letter)
				    : snprintf(label, sizeof(label), "    ");

		snprintf(label + length, sizeof(label) - (size_t)length, "--%s%s%s", row->name,
			 row->argument ? "=" : "", row->argument ? row->argument : "");
		print_row(out, HELP_COLUMN, label, command_option_help(command, row));
	}
}

static void print_statuses(FILE *out, const struct command *command)
{
	fputs("\nExit status:\n", out);
	for (const struct command_status *row = command_statuses(command); row->help; row++) {
		fprintf(out, "  %-3d  ", row->status);
		print_sentence(out, STATUS_COLUMN, row->help);
	}
}

static void print_commands(FILE *out, const struct command *command)
{
	fputs("\nCommands:\n", out);
	for (const struct command *const *each = command->commands; *each; each++) {
		char label[64];

		snprintf(label, sizeof(label), "%s%s%s", (*each)->name,
			 (*each)->operands ? " " : "", (*each)->operands ? (*each)->operands : "");
		print_row(out, NAME_COLUMN, label, (*each)->help);
	}
}

void command_help(FILE *out, const struct command *command, const char *name)
{
	fprintf(out, "Usage: %s", name);
	if (command->operands)
		fprintf(out, " %s", command->operands);
	fputs(" [OPTION...]\n", out);
	print_sentence(out, 0, command->help);
	if (command->description) {
		fputc('\n', out);
		print_wrapped(out, 0, command->description);
	}
	if (command->commands)
		print_commands(out, command);
	fputs("\nOptions:\n", out);
	print_options(out, command, command->options);
	print_options(out, command, command_common_options);
	print_statuses(out, command);
}
