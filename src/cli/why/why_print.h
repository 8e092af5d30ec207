/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the answer of answers/why.h as text or as JSON. */
#include "answers/memory.h"
#include "cli/term.h"
#include "core/snapshot.h"

struct why_options {
	const char *who; /* a process or a job, as in choose.h; NULL: all */
	bool json;	 /* print one line of JSON */
};

/* The answer for an ended job: a snapshot with this job and its processes, and their errors. */
int why_print_ended(struct snapshot *ended, const struct memory_report *memory, bool json,
		    const struct term *term);

/* -ENOENT: there is no process to explain; the output says so. */
int why_print(const struct snapshot *before, const struct snapshot *after,
	      const struct why_options *options, const struct term *term);
