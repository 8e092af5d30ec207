/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What came of an experiment of `zernel ab`, in words and as JSON. */
#include <stddef.h>
#include "core/ab.h"

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

#define AB_SENTENCE_LEN 320

/* Why it ended early; false where it did not. */
bool ab_end_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN]);
void ab_verdict_sentence(const struct ab_effect *effect, char ret[static AB_SENTENCE_LEN]);
void ab_plan_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN]);
/* In which state the scheduler is now. */
void ab_state_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN]);

/* All of it, on one line. */
int ab_to_json(const struct ab_report *report, char **ret, size_t *ret_length);
