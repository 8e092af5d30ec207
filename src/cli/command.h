/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The commands of `zernel`. A command's table yields its parsing, its --help, its manual
 * page and what a shell completes: docs.c. One file a command, and a row in commands.c.
 */
#include <stdbool.h>
#include <stdio.h>
#include "abi/types.h"
#include "cli/term.h"

/* What a shell offers for a word. */
enum completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_JOB,	 /* pids and jobs: cmd_complete.c */
	COMPLETE_COLOUR, /* values of --color */
};

struct command_option {
	const char *name;
	int key;	      /* what command_next() returns */
	const char *argument; /* NULL: it takes none */
	const char *help;
	enum completion completion;
};

struct command_status {
	int status;
	const char *help;
};

struct command_call;

/* Lists end with an empty row or with NULL. */
struct command {
	const char *name;
	const char *operands; /* as one writes them, or NULL */
	enum completion completion;
	const char *help;	 /* half a line */
	const char *description; /* what else is worth saying; or NULL */
	const char *json;	 /* help of --json; NULL: the usual one */
	const struct command_option *options;
	const struct command_status *statuses; /* NULL: the usual ones */
	const struct command *const *commands; /* of its own; then it has no run() */
	const struct command *const *hidden;   /* more of them, for scripts: not documented */
	int misuse_status;		       /* 0: EXIT_USAGE */
	/* Returns the exit status, or COMMAND_MISUSED after command_misuse(). */
	int (*run)(struct command_call *call);
};

/* One call of a command: its words, and the common options, which command_next() takes. */
struct command_call {
	const struct command *command;
	const char *name; /* all of it: "zernel procdb list" */
	int argc;
	char **argv;			     /* the first word is the command's own name */
	const struct command_option *option; /* what command_next() returned last */
	bool json;
	enum colour colour;
	bool wants_help;
	bool wants_version;
};

#define EXIT_USAGE	2
#define COMMAND_MISUSED (-1)

/* Texts of exit statuses, for commands that have a table of their own. */
#define STATUS_SUCCESS { 0, "success" }
#define STATUS_FAILURE { 1, "failure; an error message was printed" }
#define STATUS_USAGE   { EXIT_USAGE, "invalid usage" }

#define OPTION_SOCKET                                                                              \
	{ "socket", 's', "PATH", "where zerneld answers (" PROTOCOL_SOCKET ")", COMPLETE_FILE }

/* Runs what the words name, and explains it when they are invalid or ask for help. */
int command_run(const struct command *command, int argc, char **argv);

/*
 * The key of the command's next option, with its argument in optarg. -1 at their end; '?'
 * for an invalid option, which was told, and for --help and --version: then run() returns
 * COMMAND_MISUSED.
 */
int command_next(struct command_call *call);

/* The other ways to be misused. All print what is wrong with which value, and return -EINVAL. */
__attribute__((format(printf, 2, 3))) int command_misuse(struct command_call *call,
							 const char *format, ...);
/* After the options: so many operands from argv[optind] on. */
int command_operands(struct command_call *call, int least, int most);
/* The argument of the option that was returned last. */
int command_number(struct command_call *call, u64 least, u64 most, u64 *ret);
int command_decimal(struct command_call *call, double least, double most, double *ret);

/* For commands that take OPTION_SOCKET and no operand. */
int command_socket(struct command_call *call, const char **ret);

void command_help(FILE *out, const struct command *command, const char *name);

/* Options of every command: --json, --color, --help, --version. Their keys are the short ones. */
extern const struct command_option command_common_options[];
/* '\0': the option has no short form. */
char command_option_letter(const struct command_option *option);
const char *command_option_help(const struct command *command, const struct command_option *option);

/* What the usual exit statuses mean, for commands that say nothing of theirs. */
const struct command_status *command_statuses(const struct command *command);

extern const struct command command_zernel;
extern const struct command command_ab;
extern const struct command command_complete;
extern const struct command command_config;
extern const struct command command_demo;
extern const struct command command_doctor;
extern const struct command command_export;
extern const struct command command_procdb;
extern const struct command command_record;
extern const struct command command_replay;
extern const struct command command_serve;
extern const struct command command_status;
extern const struct command command_top;
extern const struct command command_version;
extern const struct command command_why;
