/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A progress bar on a terminal. Prints nothing if the output is not a terminal. */
#include "cli/term.h"

/* Shows `done` of `whole`, and a text. */
__attribute__((format(printf, 4, 5))) void progress_show(const struct term *term, u64 done,
							 u64 whole, const char *format, ...);
/* Removes the bar. */
void progress_end(const struct term *term);
