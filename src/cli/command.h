/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* A command of `zernel`, or one of a command's own. The last row of a table is empty. */
struct command {
	const char *name;
	const char *arguments;
	const char *help;
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
};

#define EXIT_USAGE 2

/* Runs the command that argv[1] names; explains `what` and its commands when there is none. */
int command_run(const struct command *commands, const char *what, int argc, char **argv);

int cmd_procdb(int argc, char **argv);
int cmd_serve(int argc, char **argv);
