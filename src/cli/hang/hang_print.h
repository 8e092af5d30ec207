/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the answer of answers/hang.h as text or as JSON. */
#include "cli/term.h"
#include "core/snapshot.h"

/* `who` is a process or a job, as in choose.h; NULL: all. -ENOENT: no job has a ledger. */
int hang_print(const struct snapshot *snapshot, const char *who, bool json,
	       const struct term *term);
