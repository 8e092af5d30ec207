/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answer to "why is the GPU idle", from two snapshots and nothing else: whoever has
 * the same two, from zerneld or from a recording, gets the same words.
 */
#include <stddef.h>
#include "base/cleanup.h"
#include "core/blame.h"

/* Less idle than that, in thousandths, is nothing to explain. */
#define WHY_IDLE_PERMILLE 50

#define WHY_SENTENCE_LEN 640
#define WHY_ADVICE_MAX	 3
#define WHY_ADVICE_LEN	 320

/* Processes of one job, by rank. */
struct why_group {
	const struct snapshot *after;
	const struct blame *blames;
	u32 nr;
	u32 subject; /* whom the answer is about: who was asked for, the straggler, or who idled
			most */
	bool asked_for_one;
	bool has_straggler;
	struct blame_straggler straggler;
};

/* Who has no answer, and why not. */
struct why_missing {
	const struct snapshot_process *process;
	int err; /* as of blame_process(); -ENODATA: it launched nothing yet */
};

struct why {
	const struct snapshot *after;
	u32 pid;	      /* the one process that was asked for, or 0 */
	struct blame *blames; /* of one job side by side, also who was not asked for */
	struct why_missing *missing;
	u32 nr_blames;
	u32 nr_missing;
};

/* `who` is a process or a job, as in choose.h; NULL: all. Both snapshots outlive the answer. */
int why_new(const struct snapshot *before, const struct snapshot *after, const char *who,
	    struct why **ret);
struct why *why_free(struct why *why);
DEFINE_CLEANUP(struct why, why_free);

/* The group that begins at this place; the next one begins `nr` further. */
struct why_group why_group(const struct why *why, u32 first);

/* What the table calls it. */
const char *why_cause_title(u32 cause);
void why_sentence(const struct why_group *group, char ret[static WHY_SENTENCE_LEN]);
/* What follows from the evidence, the most important first; how many there are. */
u32 why_advice(const struct why_group *group, char ret[static WHY_ADVICE_MAX][WHY_ADVICE_LEN]);
/* Why there is no answer for somebody. */
const char *why_missing_text(int err);

/* All of it, on one line. */
int why_to_json(const struct why *why, char **ret, size_t *ret_length);

/* The share of the time that the GPU was watched, in thousandths. */
static inline u32 why_share(const struct blame *blame, u64 ns)
{
	return blame_permille(ns, blame_watched_ns(blame));
}
