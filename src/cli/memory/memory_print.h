/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the answer of answers/memory.h as text or as JSON. */
#include "answers/memory.h"
#include "cli/term.h"

/* -ENOENT: no process holds memory. */
int memory_print(const struct memory_report *report, bool json, const struct term *term);

/* Only the out-of-memory errors. */
void memory_print_ooms(const struct memory_report *report, const struct term *term);
