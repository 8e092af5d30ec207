/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the answer of answers/memory.h as text or as JSON. */
#include "cli/term.h"
#include "core/snapshot.h"

/* `who` is a process or a job, as in choose.h; NULL: all. -ENOENT: no process holds memory. */
int memory_print(const struct snapshot *snapshot, const char *who, bool json,
		 const struct term *term);

/* The out-of-memory errors of all processes of the snapshot. */
int memory_print_ooms(const struct snapshot *snapshot, const struct term *term);
