/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer as one sentence. */
#include <errno.h>
#include <stdio.h>
#include "answers/choose.h"
#include "answers/sentence.h"
#include "answers/why.h"
#include "base/units.h"

static const struct {
	const char *title;
	const char *because;
	const char *culprit; /* the part that names the culprit, or NULL */
} causes[] = {
	[IDLE_CPU] = { "launcher computed", "its launching thread computed", NULL },
	[IDLE_RUNQUEUE] = { "launcher waited for a CPU", "its launching thread waited for a CPU",
			    "%s ran instead" },
	[IDLE_LOADER_CPU] = { "loaders computed", "its loaders still computed the data", NULL },
	[IDLE_LOADER_RUNQUEUE] = { "loaders waited for a CPU", "its loaders waited for a CPU",
				   "%s ran instead" },
	[IDLE_LOADER_DISK] = { "loaders waited for a disk", "its loaders waited for a disk",
			       "the disk was %s" },
	[IDLE_LOADER_OTHER] = { "loaders waited, other reason",
				"its loaders waited for neither a CPU nor a disk", NULL },
	[IDLE_COLLECTIVE] = { "launcher waited for ranks",
			      "its launching thread waited for other ranks", NULL },
	[IDLE_DISK] = { "launcher waited for a disk", "its launching thread waited for a disk",
			"the disk was %s" },
	[IDLE_MEMORY] = { "launcher waited for memory", "its launching thread waited for memory",
			  NULL },
	[IDLE_LOCK] = { "launcher waited for a thread",
			"its launching thread waited for another thread", NULL },
	[IDLE_OTHER] = { "launcher slept", "its launching thread slept", NULL },
	[WHY_NO_REQUESTS] = { "no requests", "there were no requests", NULL },
};

const char *why_cause_title(u32 cause)
{
	return causes[cause].title;
}

const char *why_basis(const struct blame *blame)
{
	if (blame->is_measured)
		return "measured by the driver";
	return snapshot_gpu_is_unknown(blame->process) ? "from syncs, GPU unknown" : "from syncs";
}

const char *why_missing_text(int err)
{
	switch (err) {
	case -ESRCH: return "it started during the measurement";
	case -ENODATA: return "it has not launched GPU work yet";
	default: return "zerneld was restarted, which reset its counters";
	}
}

static const struct snapshot_culprit *culprit_of(const struct blame *blame, u32 cause)
{
	for (u32 i = 0; i < blame->nr_culprits; i++)
		if (blame->culprits[i].cause == cause)
			return &blame->culprits[i];
	return NULL;
}

static const char *because(const struct blame *blame, u32 cause)
{
	/* The GPU ran dry between launches that the launcher made without a pause. */
	if (cause == IDLE_CPU && 2 * blame->launching_ns > blame->cause_ns[IDLE_CPU])
		return "its launching thread computed between launches";
	return causes[cause].because;
}

static void add_reason(struct sentence *sentence, const struct snapshot *after,
		       const struct blame *blame)
{
	u32 cause = why_cause(after, blame), largest = blame_largest_cause(blame);
	const struct snapshot_culprit *culprit = culprit_of(blame, cause);
	bool is_certain =
		why_share(blame, blame->idle_min_ns) >= WHY_IDLE_PERMILLE || !why_is_range(blame);

	if (cause == WHY_NO_CAUSE)
		return;
	sentence_add(sentence, "%s%s because %s", is_certain ? ", " : "; if it was idle, ",
		     2 * blame->cause_ns[largest] > blame->idle_ns ? "mostly" : "the largest share",
		     because(blame, cause));
	if (culprit && causes[cause].culprit) {
		sentence_add(sentence, "; ");
		/* The format comes from the table above. */
		sentence_add(sentence, causes[cause].culprit, culprit->name);
	}
}

static u32 percent(u32 permille)
{
	return (permille + 5) / 10;
}

/* "idle 43 % of the last 5.0 s", or a range. */
static void add_idle(struct sentence *sentence, const struct blame *blame)
{
	struct unit_text span = unit_ns(blame_watched_ns(blame));

	if (why_is_range(blame))
		sentence_add(sentence, "idle between %u and %u %% of the last %s (%s)",
			     percent(why_share(blame, blame->idle_min_ns)),
			     percent(why_share(blame, blame->idle_max_ns)), span.text,
			     why_basis(blame));
	else
		sentence_add(sentence, "idle %u %% of the last %s%s",
			     percent(why_share(blame, blame->idle_ns)), span.text,
			     blame->is_measured ? " (measured by the driver)" : "");
}

/* Account and counter contradict each other: at least one is wrong, so no cause is named. */
static void add_disagreement(struct sentence *sentence, const struct blame *blame)
{
	add_idle(sentence, blame);
	sentence_add(
		sentence,
		", but the driver measured %u %%. The calls that Zernel sees do not explain the "
		"difference, so no cause is named",
		percent(why_share(blame, blame->counter_idle_ns)));
}

/* Comes first in the answer about the straggler, and last in the answer about another rank. */
static void add_straggler(struct sentence *sentence, const struct why_group *group)
{
	/* Indexed by: the time was measured; the answer is about the straggler. */
	static const char *const formats[2][2] = {
		{ " Rank %d enters collectives last: its delay is %u %% of the time.",
		  "Rank %d enters collectives last: its delay is %u %% of the time. " },
		{ " Rank %d delays it in collectives, %u %% of the time.",
		  "Rank %d delays the other ranks: they wait for it %u %% of the time. " },
	};
	const struct blame *straggler = &group->blames[group->straggler.at];
	u32 delay = blame_permille(group->straggler.lead_ns, straggler->wall_ns);
	bool speaks = group->subject == group->straggler.at;

	sentence_add(sentence, formats[group->straggler.is_measured][speaks],
		     straggler->process->rank, percent(delay));
}

/* Only a measured share is mentioned. */
static u32 waiting_share(const struct blame *blame)
{
	u32 share = why_share(blame, blame->waited_ns);

	return blame->waited == WAITED_MEASURED && share >= STRAGGLER_PERMILLE ? share : 0;
}

static void add_busy(struct sentence *sentence, const struct why_group *group)
{
	const struct blame *blame = &group->blames[group->subject];
	bool is_straggler = group->has_straggler && group->subject == group->straggler.at;
	u32 waits = waiting_share(blame);

	sentence_add(sentence, "busy %u %% of the last %s",
		     percent(1000 - why_share(blame, blame->idle_ns)),
		     unit_ns(blame_watched_ns(blame)).text);
	if (is_straggler && group->straggler.is_measured)
		sentence_add(sentence, ": it computes longer than the GPUs of the other ranks");
	else if (waits)
		sentence_add(sentence, ", but waited for other ranks %u %% of that time",
			     percent(waits));
	else if (!group->has_straggler)
		sentence_add(sentence, ": nothing to explain");
}

void why_sentence(const struct why_group *group, char ret[static WHY_SENTENCE_LEN])
{
	struct sentence sentence = { .text = ret, .size = WHY_SENTENCE_LEN };
	const struct blame *blame = &group->blames[group->subject];
	bool is_straggler = group->has_straggler && group->subject == group->straggler.at;
	u32 idle = why_share(blame, why_is_range(blame) ? blame->idle_max_ns : blame->idle_ns);

	ret[0] = '\0';
	if (is_straggler)
		add_straggler(&sentence, group);
	sentence_add(&sentence, "GPU of %s was ", choose_name(blame->process).text);
	if (blame->disagrees) {
		add_disagreement(&sentence, blame);
	} else if (idle >= WHY_IDLE_PERMILLE) {
		add_idle(&sentence, blame);
		add_reason(&sentence, group->after, blame);
	} else {
		add_busy(&sentence, group);
	}
	sentence_add(&sentence, ".");
	if (group->has_straggler && !is_straggler)
		add_straggler(&sentence, group);
}
