/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The commands of `zernel`. A command's table yields its parsing, its --help, its manual
 * page and what a shell completes: docs.c. One file a command, and a row in commands.c.
 */
#include <stdbool.h>
#include <stdio.h>

/* What a shell offers for a word. */
enum completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
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

/* Lists end with an empty row or with NULL. */
struct command {
	const char *name;
	const char *operands; /* as one writes them, or NULL */
	enum completion completion;
	const char *help;	 /* half a line */
	const char *description; /* what else is worth saying; or NULL */
	const struct command_option *options;
	const struct command_status *statuses; /* NULL: the usual ones */
	const struct command *const *commands; /* of its own; then it has no run() */
	int misuse_status;		       /* 0: EXIT_USAGE */
	/* argv[0] is the command's name. Returns the exit status, or COMMAND_MISUSED. */
	int (*run)(const struct command *command, int argc, char **argv);
};

#define EXIT_USAGE	2
#define COMMAND_MISUSED (-1)

/* What several commands take. */
#define OPTION_JSON { "json", 'j', NULL, "as JSON, for programs" }
#define OPTION_SOCKET                                                                              \
	{ "socket", 's', "PATH", "where zerneld answers (" PROTOCOL_SOCKET ")", COMPLETE_FILE }

/* Runs what the words name, and explains it when they make no sense or ask for help. */
int command_run(const struct command *command, int argc, char **argv);

/* The key of the next option, with its argument in optarg; -1 at their end, '?' for none. */
int command_next(const struct command *command, int argc, char **argv);

/* For commands that take OPTION_JSON, OPTION_SOCKET and nothing else; -EINVAL for anything else. */
struct common_options {
	bool json;
	const char *socket;
};
int command_common(const struct command *command, int argc, char **argv,
		   struct common_options *ret);

/* `name` is the whole of it: "zernel procdb list". */
void command_help(FILE *out, const struct command *command, const char *name);

/* What the usual exit statuses mean, for commands that say nothing of theirs. */
const struct command_status *command_statuses(const struct command *command);

extern const struct command command_zernel;
extern const struct command command_ab;
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
