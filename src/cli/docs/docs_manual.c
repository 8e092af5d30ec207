/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Manual pages, in roff, from the tables of commands. */
#include <ctype.h>
#include <string.h>
#include "cli/docs/docs.h"

/* Escapes text for roff, also a line that would begin with a request. */
static void print_text(FILE *out, const char *text)
{
	bool at_start = true;

	for (; *text; text++) {
		if (at_start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
		at_start = *text == '\n';
	}
}

static void print_sentence(FILE *out, const char *text)
{
	fputc(toupper((unsigned char)*text), out);
	print_text(out, text + 1);
	fputs(".\n", out);
}

static void print_synopsis(FILE *out, const char *name, const struct command *command)
{
	fprintf(out, ".B %s\n", name);
	if (command->commands) {
		fputs(".I command\n", out);
		return;
	}
	if (command->operands) {
		fputs(".I ", out);
		print_text(out, command->operands);
		fputc('\n', out);
	}
	fputs(".RI [ option ...]\n", out);
}

static void print_options(FILE *out, const struct command *command,
			  const struct command_option *row)
{
	for (; row && row->name; row++) {
		char letter = command_option_letter(row);

		fputs(".TP\n.B ", out);
		if (letter)
			fprintf(out, "\\-%c, ", letter);
		print_text(out, "--");
		print_text(out, row->name);
		if (row->argument)
			fprintf(out, "=\\fI%s\\fP", row->argument);
		fputc('\n', out);
		print_sentence(out, command_option_help(command, row));
	}
}

/* A subcommand has a section in the page of its command. */
static void print_subcommand(FILE *out, const char *name, const struct command *command)
{
	fprintf(out, ".SS %s\n", command->name);
	print_synopsis(out, name, command);
	fputs(".PP\n", out);
	print_sentence(out, command->help);
	if (command->description) {
		print_text(out, command->description);
		fputc('\n', out);
	}
	print_options(out, command, command->options);
}

static void print_own_commands(FILE *out, const struct command *command, bool is_root)
{
	fputs(".SH COMMANDS\n", out);
	for (const struct command *const *each = command->commands; *each; each++) {
		char name[64];

		snprintf(name, sizeof(name), "zernel %s %s", command->name, (*each)->name);
		if (!is_root) {
			print_subcommand(out, name, *each);
			continue;
		}
		fprintf(out, ".TP\n.BR zernel\\-%s (1)\n", (*each)->name);
		print_sentence(out, (*each)->help);
	}
}

static void print_statuses(FILE *out, const struct command *command)
{
	fputs(".SH EXIT STATUS\n", out);
	for (const struct command_status *row = command_statuses(command); row->help; row++) {
		fprintf(out, ".TP\n.B %d\n", row->status);
		print_sentence(out, row->help);
	}
}

void docs_print_manual(FILE *out, const struct command *command)
{
	bool is_root = command == &command_zernel;
	char page[64] = "zernel", words[64] = "zernel";

	if (!is_root) {
		snprintf(page, sizeof(page), "zernel\\-%s", command->name);
		snprintf(words, sizeof(words), "zernel %s", command->name);
	}
	fprintf(out, ".TH %s 1 \"\" \"zernel\" \"zernel\"\n.SH NAME\n%s \\- ", page, page);
	print_text(out, command->help);
	fputs("\n.SH SYNOPSIS\n", out);
	print_synopsis(out, words, command);
	fputs(".SH DESCRIPTION\n", out);
	print_sentence(out, command->help);
	if (command->description) {
		fputs(".PP\n", out);
		print_text(out, command->description);
		fputc('\n', out);
	}
	if (command->commands)
		print_own_commands(out, command, is_root);
	fputs(".SH OPTIONS\n", out);
	if (command->commands)
		fputs("Each command has these options as well.\n", out);
	print_options(out, command, command->options);
	print_options(out, command, command_common_options);
	print_statuses(out, command);
	fputs(".SH SEE ALSO\n", out);
	if (!is_root)
		fputs(".BR zernel (1),\n", out);
	fputs(".BR zerneld (8),\n.BR zernel.conf (5)\n", out);
}
