/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* The experiment of `zernel ab`: carries it out, and tells what came of it. */
#include "cli/choose.h"
#include "cli/term.h"
#include "core/ab.h"

struct ab_options {
	const char *socket;
	const char *who;
	u64 total_ns;
	u64 seed;
	u32 bound_permille; /* how much longer a step may take than it did */
};

/* How it came to its end. */
enum ab_end {
	AB_COMPLETE,
	AB_TOO_SLOW, /* the job, beyond the bound */
	AB_INTERRUPTED,
	AB_JOB_GONE,	 /* or a part of it */
	AB_ZERNELD_GONE, /* or it was started anew */
	AB_REFUSED,	 /* by zerneld, to switch the scheduler */
	AB_EJECTED,	 /* the scheduler, by the kernel */
	AB_MEDDLED,	 /* somebody else switched the scheduler */
	AB_END_NR,
};

struct ab_report {
	char subject[SNAPSHOT_TEXT_LEN];
	struct ab_plan plan;
	u64 seed;
	u32 found; /* the state of the scheduler at the start: enum snapshot_sched_state */
	u32 end;
	int signal;
	bool restored;		/* it is in that state again */
	struct ab_window usual; /* in that state */
	struct ab_window slow;	/* what was beyond the bound */
	u32 nr_pairs;
	struct ab_pair pairs[AB_PAIRS_MAX];
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
