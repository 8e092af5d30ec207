/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The commands of `zernel`. The table of a command defines its parsing, its --help, its manual
 * page and its shell completion (src/cli/docs). Each command has one file and a row in commands.c.
 */
#include <stdbool.h>
#include <stdio.h>
#include "abi/types.h"
#include "cli/term.h"

/* How a shell completes a word. */
enum completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_JOB,	 /* pids and jobs, from cmd_complete.c */
	COMPLETE_COLOUR, /* values of --color */
};

struct command_option {
	const char *name;
	int key;	      /* the return value of command_next() */
	const char *argument; /* NULL: takes no argument */
	const char *help;
	enum completion completion;
};

struct command_status {
	int status;
	const char *help;
};

struct command_call;

/* An empty row or NULL ends each list. */
struct command {
	const char *name;
	const char *operands; /* as in the synopsis, or NULL */
	enum completion completion;
	const char *help;	 /* half a line, lower case, imperative */
	const char *description; /* full sentences, or NULL */
	const char *json;	 /* help of --json; NULL: the common text */
	const struct command_option *options;
	const struct command_status *statuses; /* NULL: the common statuses */
	const struct command *const *commands; /* subcommands; then run() is NULL */
	const struct command *const *hidden;   /* undocumented subcommands, for scripts */
	int misuse_status;		       /* 0: EXIT_USAGE */
	/* Returns the exit status, or COMMAND_MISUSED after command_misuse(). */
	int (*run)(struct command_call *call);
};

/* One call of a command: its words, and the common options that command_next() parses. */
struct command_call {
	const struct command *command;
	const char *name; /* full name: "zernel procdb list" */
	int argc;
	char **argv;			     /* argv[0] is the name of the command */
	const struct command_option *option; /* the last option that command_next() returned */
	bool json;
	enum colour colour;
	bool wants_help;
	bool wants_version;
};

#define EXIT_USAGE	2
#define COMMAND_MISUSED (-1)

/* Texts of common exit statuses, for commands with their own table. */
#define STATUS_SUCCESS { 0, "success" }
#define STATUS_FAILURE { 1, "failure; an error message was printed" }
#define STATUS_USAGE   { EXIT_USAGE, "invalid usage" }

#define OPTION_SOCKET                                                                              \
	{ "socket", 's', "PATH",                                                                   \
	  "connect to zerneld on this socket (default: " PROTOCOL_SOCKET ")", COMPLETE_FILE }

/* Runs the command that the words name. Prints help or an error if the words ask for it. */
int command_run(const struct command *command, int argc, char **argv);

/*
 * Returns the key of the next option, with its argument in optarg, or -1 after the last option.
 * Returns '?' for --help, --version and an invalid option (an error was printed): then run()
 * returns COMMAND_MISUSED.
 */
int command_next(struct command_call *call);

/* Errors in the command line. Each function prints the invalid value and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int command_misuse(struct command_call *call,
							 const char *format, ...);
/* Call it after the last option. Checks the number of operands from argv[optind] on. */
int command_operands(struct command_call *call, int least, int most);
/* Parses the argument of the option that command_next() returned last. */
int command_number(struct command_call *call, u64 least, u64 most, u64 *ret);
int command_decimal(struct command_call *call, double least, double most, double *ret);

/* Parses the command line of a command that takes OPTION_SOCKET and at most `operands_max`
 * operands. */
int command_socket(struct command_call *call, int operands_max, const char **ret);

void command_help(FILE *out, const struct command *command, const char *name);

/* Options of every command: --json, --color, --help, --version. A key is the short option. */
extern const struct command_option command_common_options[];
/* Returns '\0' if the option has no short form. */
char command_option_letter(const struct command_option *option);
const char *command_option_help(const struct command *command, const struct command_option *option);

/* The exit statuses of the command, or the common ones. */
const struct command_status *command_statuses(const struct command *command);

extern const struct command command_zernel;
extern const struct command command_ab;
extern const struct command command_complete;
extern const struct command command_config;
extern const struct command command_demo;
extern const struct command command_doctor;
extern const struct command command_export;
extern const struct command command_hang;
extern const struct command command_jobs;
extern const struct command command_memory;
extern const struct command command_procdb;
extern const struct command command_record;
extern const struct command command_replay;
extern const struct command command_scheduler;
extern const struct command command_serve;
extern const struct command command_status;
extern const struct command command_top;
extern const struct command command_version;
extern const struct command command_why;
