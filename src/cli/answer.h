/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A command that asks for a snapshot and prints one answer about it. */
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/term.h"
#include "core/snapshot.h"

#define EXIT_NOBODY 3

/* -ENOENT: nobody matches `who`, and that was said. */
typedef int (*answer_print_fn)(const struct snapshot *snapshot, const char *who, bool json,
			       const struct term *term);

/* Returns the exit status. `failure` is logged with the reason if the answer cannot be printed. */
int answer_run(struct command_call *call, answer_print_fn print, const char *failure);
