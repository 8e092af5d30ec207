/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The experiment of `zernel ab`: carries it out, and tells what came of it. */
#include "answers/ab_report.h"
#include "cli/term.h"

struct ab_options {
	const char *socket;
	const char *who;
	u64 total_ns;
	u64 seed;
	u32 bound_permille; /* how much longer a step may take than it did */
};

/*
 * The state of the scheduler is restored on every way out, also when this very process is
 * killed, unless the kernel ejected it or somebody else switched it meanwhile.
 *
 * Signals that would end the program end the experiment instead. Below 0 only when it could
 * not begin, for a reason that was told.
 */
int ab_run(const struct ab_options *options, const struct term *progress, struct ab_report *ret);

int ab_print(const struct ab_report *report, const struct term *term);
int ab_print_json(const struct ab_report *report, FILE *out);
