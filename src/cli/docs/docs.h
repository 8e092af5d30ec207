/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What is made of the tables of commands beside --help: manual pages and completion. */
#include "cli/command.h"

/* zernel(1), or zernel-NAME(1) for a command of it. */
void docs_print_manual(FILE *out, const struct command *command);

void docs_print_bash(FILE *out, const struct command *root);
void docs_print_zsh(FILE *out, const struct command *root);
void docs_print_fish(FILE *out, const struct command *root);
