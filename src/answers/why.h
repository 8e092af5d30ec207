/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answer to "why is the GPU idle". It depends only on two snapshots, so the same snapshots
 * give the same text, from zerneld or from a recording.
 */
#include <stddef.h>
#include "base/cleanup.h"
#include "core/blame.h"

/* A smaller idle share, in thousandths, needs no explanation. */
#define WHY_IDLE_PERMILLE 50

/* An idle share that is known less exactly, in thousandths, is given as a range. */
#define WHY_RANGE_PERMILLE 30

/* Beside the causes of the account: a server has nothing to do; the cause is not known. */
#define WHY_NO_REQUESTS IDLE_CAUSE_NR
#define WHY_NO_CAUSE	(IDLE_CAUSE_NR + 1)

#define WHY_SENTENCE_LEN 640
#define WHY_ADVICE_MAX	 3
#define WHY_ADVICE_LEN	 320

/* Processes of one job, by rank. */
struct why_group {
	const struct snapshot *after;
	const struct blame *blames;
	u32 nr;
	u32 subject; /* the answer is about this process: the one that was asked for, else the
			straggler, else the one with the largest idle share */
	bool asked_for_one;
	bool has_straggler;
	struct blame_straggler straggler;
};

/* A process without an answer, and the reason. */
struct why_missing {
	const struct snapshot_process *process;
	int err; /* from blame_process(); -ENODATA: it has not launched work yet */
};

struct why {
	const struct snapshot *after;
	u32 pid;	      /* the single process that was asked for, or 0 */
	struct blame *blames; /* sorted by job; includes ranks that were not asked for */
	struct why_missing *missing;
	u32 nr_blames;
	u32 nr_missing;
};

/* `who` is an operand as in choose.h, or NULL. Both snapshots must outlive the answer. */
int why_new(const struct snapshot *before, const struct snapshot *after, const char *who,
	    struct why **ret);
/*
 * The span that an answer for an ended job covers: makes the snapshot at its begin and sets the
 * time of `ended`, which has one job and its processes.
 */
int why_ended_span(struct snapshot *ended, struct snapshot **ret_before);
struct why *why_free(struct why *why);
DEFINE_CLEANUP(struct why, why_free);

/* The group that starts at index `first`. The next group starts at `first` + `nr`. */
struct why_group why_group(const struct why *why, u32 first);

/* The cause that the answer names: enum idle_cause, WHY_NO_REQUESTS or WHY_NO_CAUSE. */
u32 why_cause(const struct snapshot *after, const struct blame *blame);
/* The title of the cause in the table, and its name in JSON. Not for WHY_NO_CAUSE. */
const char *why_cause_title(u32 cause);
const char *why_cause_label(u32 cause);
/* Loader threads of the process, plus loader processes of which it is the consumer. */
u32 why_nr_loaders(const struct snapshot *snapshot, u32 pid);
/* The source of the idle share: "measured by the driver" or "from syncs". */
const char *why_basis(const struct blame *blame);
void why_sentence(const struct why_group *group, char ret[static WHY_SENTENCE_LEN]);
/* Writes advice, the most important first, and returns the number of texts. */
u32 why_advice(const struct why_group *group, char ret[static WHY_ADVICE_MAX][WHY_ADVICE_LEN]);
/* The reason why a process has no answer. */
const char *why_missing_text(int err);

/* The whole answer on one line. */
int why_to_json(const struct why *why, char **ret, size_t *ret_length);

/* The share of the watched time, in thousandths. */
static inline u32 why_share(const struct blame *blame, u64 ns)
{
	return blame_permille(ns, blame_watched_ns(blame));
}

/* True if the idle share is known too inexactly for one number. */
static inline bool why_is_range(const struct blame *blame)
{
	return why_share(blame, blame->idle_max_ns - blame->idle_min_ns) > WHY_RANGE_PERMILLE;
}
