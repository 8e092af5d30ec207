/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The experiment of `zernel ab`: runs it and prints the result. */
#include "answers/ab_report.h"
#include "cli/term.h"

struct ab_options {
	const char *socket;
	const char *who;
	u64 total_ns;
	u64 seed;
	u32 bound_permille; /* limit of the step time, in thousandths of the step time before */
};

/*
 * Restores the state of the scheduler whenever it ends, even if this process is killed, unless the
 * kernel ejected the scheduler or another client switched it.
 *
 * Signals that would end the program end the experiment instead. Returns an error only if the
 * experiment could not start; the reason is logged.
 */
int ab_run(const struct ab_options *options, const struct term *progress, struct ab_report *ret);

int ab_print(const struct ab_report *report, const struct term *term);
int ab_print_json(const struct ab_report *report, FILE *out);
