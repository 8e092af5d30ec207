/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The result of an experiment of `zernel ab`, as text and as JSON. */
#include <stddef.h>
#include "core/ab.h"

/* How the experiment ended. */
enum ab_end {
	AB_COMPLETE,
	AB_TOO_SLOW, /* the job was slower than the bound */
	AB_INTERRUPTED,
	AB_JOB_GONE,	 /* or a process of it */
	AB_ZERNELD_GONE, /* or it was restarted */
	AB_REFUSED,	 /* zerneld refused to switch the scheduler */
	AB_EJECTED,	 /* the kernel ejected the scheduler */
	AB_MEDDLED,	 /* another client switched the scheduler */
	AB_END_NR,
};

struct ab_report {
	char subject[SNAPSHOT_TEXT_LEN];
	struct ab_plan plan;
	u64 seed;
	u32 found;    /* what zerneld acted with at the start: enum snapshot_actuator */
	u32 actuator; /* what it acted with in the experiment; ACTUATOR_NONE: it never acted */
	u32 end;
	int signal;
	bool restored;		/* zerneld acts as at the start again */
	struct ab_window usual; /* steps in state `found` */
	struct ab_window slow;	/* the window that was slower than the bound */
	u32 nr_pairs;
	struct ab_pair pairs[AB_PAIRS_MAX];
};

#define AB_SENTENCE_LEN 320

/* Why the experiment ended early; false if it is complete. */
bool ab_end_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN]);
void ab_verdict_sentence(const struct ab_report *report, const struct ab_effect *effect,
			 char ret[static AB_SENTENCE_LEN]);
void ab_plan_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN]);
/* The state of the scheduler after the experiment. */
void ab_state_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN]);

/* The whole report on one line. */
int ab_to_json(const struct ab_report *report, char **ret, size_t *ret_length);
