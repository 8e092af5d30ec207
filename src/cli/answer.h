/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A command that asks for a snapshot and prints one answer about it. */
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/term.h"
#include "core/snapshot.h"

#define EXIT_NOBODY 3

struct answer_call {
	const char *socket;
	const char *who; /* the operand; NULL: all */
	bool json;
	struct term term;
};

/* -ENOENT: nobody matches `who`, and that was said. */
typedef int (*answer_print_fn)(const struct snapshot *snapshot, const struct answer_call *call);

/* Returns the exit status. `failure` is logged with the reason if the answer cannot be printed. */
int answer_ask(const struct answer_call *answer, answer_print_fn print, const char *failure);
/* The same for a command that has no options but OPTION_SOCKET. */
int answer_run(struct command_call *call, answer_print_fn print, const char *failure);
