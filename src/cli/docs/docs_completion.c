/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion for shells, from the tables of commands. */
#include <string.h>
#include "abi/types.h"
#include "cli/docs/docs.h"

#define HEADER                                                                                     \
	"# SPDX-License-Identifier: GPL-2.0-or-later\n# Generated from the tables of commands by " \
	"zernel-docs. Do not edit.\n"

#define PATH_LEN 128
#define COLOURS	 "auto always never"

/* How each shell completes a word, by enum completion. */
static const char *const bash_ways[] = {
	[COMPLETE_NOTHING] = "nothing",
	[COMPLETE_FILE] = "files",
	[COMPLETE_JOB] = "jobs",
	[COMPLETE_COLOUR] = "colors",
};
static const char *const zsh_ways[] = {
	[COMPLETE_NOTHING] = "",
	[COMPLETE_FILE] = "_files",
	[COMPLETE_JOB] = "_zernel_jobs",
	[COMPLETE_COLOUR] = "(" COLOURS ")",
};
static const char *const fish_ways[] = {
	[COMPLETE_NOTHING] = "",
	[COMPLETE_FILE] = " -F",
	[COMPLETE_JOB] = " -a '(zernel complete -- (commandline -opc) 2>/dev/null)'",
	[COMPLETE_COLOUR] = " -a '" COLOURS "'",
};

static const struct command_option no_options[] = { {} };
static const struct command *const no_commands[] = { NULL };

static const struct command_option *options_of(const struct command *command)
{
	return command->options ? command->options : no_options;
}

static const struct command *const *commands_of(const struct command *command)
{
	return command->commands ? command->commands : no_commands;
}

/* The words that may follow, by the commands so far. */
static void print_bash_words(FILE *out, const struct command *command, const char *path)
{
	fprintf(out, "\t'%s') words='", path);
	for (const struct command *const *each = commands_of(command); *each; each++)
		fprintf(out, "%s ", (*each)->name);
	for (const struct command_option *row = options_of(command); row->name; row++)
		fprintf(out, "--%s ", row->name);
	fprintf(out, "' more=%s ;;\n", bash_ways[command->completion]);
	for (const struct command *const *each = commands_of(command); *each; each++) {
		char longer[PATH_LEN];

		snprintf(longer, sizeof(longer), "%s %s", path, (*each)->name);
		print_bash_words(out, *each, longer);
	}
}

/* The words that may follow an option with an argument. */
static void print_bash_arguments(FILE *out, const struct command *command, const char *path)
{
	for (const struct command_option *row = options_of(command); row->name; row++)
		if (row->argument)
			fprintf(out, "\t'%s --%s') words='' common='' more=%s ;;\n", path,
				row->name, bash_ways[row->completion]);
	for (const struct command *const *each = commands_of(command); *each; each++) {
		char longer[PATH_LEN];

		snprintf(longer, sizeof(longer), "%s %s", path, (*each)->name);
		print_bash_arguments(out, *each, longer);
	}
}

static void print_bash_names(FILE *out, const struct command *command, const char *path)
{
	for (const struct command *const *each = commands_of(command); *each; each++) {
		char longer[PATH_LEN];

		snprintf(longer, sizeof(longer), "%s %s", path, (*each)->name);
		fprintf(out, "\t\t'%s') path=\"$path $word\" ;;\n", longer);
		print_bash_names(out, *each, longer);
	}
}

static void print_bash_common(FILE *out)
{
	const struct command_option *row = command_common_options;

	fputs("\tlocal common='", out);
	for (; row->name; row++)
		fprintf(out, "%s--%s", row == command_common_options ? "" : " ", row->name);
	fputs("'\n", out);
}

static void print_bash_common_arguments(FILE *out)
{
	for (const struct command_option *row = command_common_options; row->name; row++)
		if (row->argument)
			fprintf(out, "\t*' --%s') words='' common='' more=%s ;;\n", row->name,
				bash_ways[row->completion]);
}

/* bash splits --option=value into three words. */
void docs_print_bash(FILE *out, const struct command *root)
{
	fputs(HEADER
	      "# shellcheck shell=bash\n"
	      "_zernel() {\n"
	      "\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	      "\tlocal path=zernel words='' more=nothing word\n",
	      out);
	print_bash_common(out);
	fputs("\tif [ \"$current\" = = ]; then\n"
	      "\t\tcurrent=''\n"
	      "\telif [ \"$before\" = = ]; then\n"
	      "\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]}\n"
	      "\tfi\n"
	      "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
	      "\t\tcase \"$path $word\" in\n",
	      out);
	print_bash_names(out, root, root->name);
	fputs("\t\tesac\n\tdone\n\tcase \"$path\" in\n", out);
	print_bash_words(out, root, root->name);
	fputs("\tesac\n\tcase \"$path $before\" in\n", out);
	print_bash_arguments(out, root, root->name);
	print_bash_common_arguments(out);
	fputs("\tesac\n"
	      "\t[ \"$more\" != colors ] || words='" COLOURS "'\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words $common\" -- \"$current\"\n"
	      "\t\t[ \"$more\" != files ] || compgen -f -- \"$current\")\n"
	      "\t[ \"$more\" = jobs ] || return 0\n"
	      "\twhile IFS= read -r word; do\n"
	      "\t\t[[ $word != \"${current//\\\\/}\"* ]] || COMPREPLY+=(\"$word\")\n"
	      "\tdone < <(zernel complete -- \"${COMP_WORDS[@]}\" 2>/dev/null)\n"
	      "}\n"
	      "complete -o filenames -F _zernel zernel\n",
	      out);
}

/* The text is inside single quotes. zsh also gives a meaning to colons and brackets. */
static void print_quoted(FILE *out, const char *text, const char *escaped)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", out);
		else if (strchr(escaped, *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

/* _arguments expects the command's own name as the first word. */
static void print_zsh_options(FILE *out, const struct command *command, const char *indent,
			      u32 depth)
{
	fprintf(out, "%sshift %u words\n%s((CURRENT -= %u))\n", indent, depth, indent, depth);
	fprintf(out, "%s_arguments $common", indent);
	for (const struct command_option *row = options_of(command); row->name; row++) {
		fprintf(out, " \\\n%s\t'--%s%s[", indent, row->name, row->argument ? "=" : "");
		print_quoted(out, row->help, "[]:");
		fputc(']', out);
		if (row->argument)
			fprintf(out, ":%s:%s", row->argument, zsh_ways[row->completion]);
		fputc('\'', out);
	}
	if (command->operands)
		fprintf(out, " \\\n%s\t'*:%s:%s'", indent, command->operands,
			zsh_ways[command->completion]);
	fputc('\n', out);
}

/*
 * Completes the names of subcommands, or the words that follow a subcommand. `depth` is the
 * number of subcommands before the word.
 */
static void print_zsh_command(FILE *out, const struct command *command, u32 depth)
{
	static const char tabs[] = "\t\t\t\t\t\t\t\t";
	const char *indent = tabs + sizeof(tabs) - 2 - 2 * (size_t)depth;

	if (!command->commands) {
		print_zsh_options(out, command, indent, depth);
		return;
	}
	fprintf(out, "%sif ((CURRENT == %u)); then\n%s\tnames=(", indent, depth + 2, indent);
	for (const struct command *const *each = command->commands; *each; each++) {
		fprintf(out, "\n%s\t\t'%s:", indent, (*each)->name);
		print_quoted(out, (*each)->help, ":");
		fputc('\'', out);
	}
	fprintf(out, "\n%s\t)\n%s\t_describe command names\n%s\treturn\n%sfi\n", indent, indent,
		indent, indent);
	fprintf(out, "%scase $words[%u] in\n", indent, depth + 2);
	for (const struct command *const *each = command->commands; *each; each++) {
		fprintf(out, "%s\t%s)\n", indent, (*each)->name);
		print_zsh_command(out, *each, depth + 1);
		fprintf(out, "%s\t\t;;\n", indent);
	}
	fprintf(out, "%sesac\n", indent);
}

static void print_zsh_common(FILE *out)
{
	fputs("\tlocal -a common=(", out);
	for (const struct command_option *row = command_common_options; row->name; row++) {
		char letter = command_option_letter(row);

		fputs("\n\t\t", out);
		if (letter)
			fprintf(out, "{-%c,--%s}", letter, row->name);
		fprintf(out, "'%s%s%s[", letter ? "" : "--", letter ? "" : row->name,
			row->argument ? "=" : "");
		print_quoted(out, row->help, "[]:");
		fputc(']', out);
		if (row->argument)
			fprintf(out, ":%s:%s", row->argument, zsh_ways[row->completion]);
		fputc('\'', out);
	}
	fputs("\n\t)\n", out);
}

/* line_words keeps the whole line, because _arguments sees it without the command's names. */
void docs_print_zsh(FILE *out, const struct command *root)
{
	fputs("#compdef zernel\n" HEADER "_zernel_jobs() {\n"
	      "\tlocal -a found=(${(f)\"$(zernel complete -- $line_words 2>/dev/null)\"})\n"
	      "\tcompadd -a found\n"
	      "}\n"
	      "_zernel() {\n"
	      "\tlocal -a names line_words=($words)\n",
	      out);
	print_zsh_common(out);
	print_zsh_command(out, root, 0);
	fputs("}\n_zernel \"$@\"\n", out);
}

static void print_fish_option(FILE *out, const struct command_option *row, const char *condition)
{
	char letter = command_option_letter(row);

	fprintf(out, "complete -c zernel -n '%s'", condition);
	if (letter)
		fprintf(out, " -s %c", letter);
	fprintf(out, " -l %s%s%s -d '", row->name, row->argument ? " -r" : "",
		fish_ways[row->completion]);
	print_quoted(out, row->help, "");
	fputs("'\n", out);
}

/* The condition: the line contains the names of the command and of its parents. */
static void print_fish_command(FILE *out, const struct command *command, const char *condition)
{
	for (const struct command *const *each = commands_of(command); *each; each++) {
		char deeper[2 * PATH_LEN];

		fprintf(out, "complete -c zernel -n '%s; and not __fish_seen_subcommand_from",
			condition);
		for (const struct command *const *other = command->commands; *other; other++)
			fprintf(out, " %s", (*other)->name);
		fprintf(out, "' -a %s -d '", (*each)->name);
		print_quoted(out, (*each)->help, "");
		fputs("'\n", out);
		snprintf(deeper, sizeof(deeper), "%s; and __fish_seen_subcommand_from %s",
			 condition, (*each)->name);
		print_fish_command(out, *each, deeper);
	}
	if (command->completion != COMPLETE_NOTHING)
		fprintf(out, "complete -c zernel -n '%s'%s\n", condition,
			fish_ways[command->completion]);
	for (const struct command_option *row = options_of(command); row->name; row++)
		print_fish_option(out, row, condition);
}

void docs_print_fish(FILE *out, const struct command *root)
{
	fputs(HEADER "complete -c zernel -f\n", out);
	for (const struct command_option *row = command_common_options; row->name; row++)
		print_fish_option(out, row, "true");
	print_fish_command(out, root, "true");
}
