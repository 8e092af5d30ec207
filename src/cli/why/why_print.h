/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shows the answer of answers/why.h on a terminal, in a pipe, or as JSON. */
#include "cli/term.h"
#include "core/snapshot.h"

struct why_options {
	const char *who; /* a process or a job, as in choose.h; NULL: all */
	bool json;	 /* one line */
};

/* -ENOENT: nobody is there whose GPU could be explained, which was told. */
int why_print(const struct snapshot *before, const struct snapshot *after,
	      const struct why_options *options, const struct term *term);
