/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Texts that are generated from the tables of commands: manual pages, completion, docs pages. */
#include "cli/command.h"

/* zernel(1), or zernel-NAME(1) for a command of it. */
void docs_print_manual(FILE *out, const struct command *command);

void docs_print_bash(FILE *out, const struct command *root);
void docs_print_zsh(FILE *out, const struct command *root);
void docs_print_fish(FILE *out, const struct command *root);

/* Pages of docs/reference. All tables are known; `root` is the table of commands. */
void docs_print_cli(FILE *out, const struct command *root);
void docs_print_config(FILE *out, const struct command *root);
void docs_print_runtimes(FILE *out, const struct command *root);
