/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the answer of answers/hang.h as text or as JSON. */
#include "answers/hang.h"
#include "cli/term.h"

/* -ENOENT: no job has a ledger. */
int hang_print(const struct hang *hang, bool json, const struct term *term);
