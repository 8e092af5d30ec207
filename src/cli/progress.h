/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A bar on standard error while something takes its time; nothing where nobody looks. */
#include "cli/term.h"

/* `done` of `whole`, and what is going on. */
__attribute__((format(printf, 4, 5))) void progress_show(const struct term *term, u64 done,
							 u64 whole, const char *format, ...);
/* Takes it away again. */
void progress_end(const struct term *term);
