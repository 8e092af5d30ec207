/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer as one sentence. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "answers/choose.h"
#include "answers/why.h"
#include "base/units.h"

static const struct {
	const char *title;
	const char *because;
	const char *culprit; /* the part that names the culprit, or NULL */
} causes[IDLE_CAUSE_NR] = {
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
};

const char *why_cause_title(u32 cause)
{
	return causes[cause].title;
}

const char *why_missing_text(int err)
{
	switch (err) {
	case -ESRCH: return "it started during the measurement";
	case -ENODATA: return "it has not launched GPU work yet";
	default: return "zerneld was restarted, which reset its counters";
	}
}

struct sentence {
	char *text;
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *sentence, const char *format,
						      ...)
{
	size_t room = WHY_SENTENCE_LEN - sentence->used;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(sentence->text + sentence->used, room, format, arguments);
	va_end(arguments);
	if (n > 0)
		sentence->used += (size_t)n < room ? (size_t)n : room - 1;
}

static const struct snapshot_culprit *culprit_of(const struct blame *blame, u32 cause)
{
	for (u32 i = 0; i < blame->nr_culprits; i++)
		if (blame->culprits[i].cause == cause)
			return &blame->culprits[i];
	return NULL;
}

static void add_reason(struct sentence *sentence, const struct blame *blame)
{
	u32 cause = blame_largest_cause(blame);
	const struct snapshot_culprit *culprit = culprit_of(blame, cause);

	add(sentence, ", %s because %s",
	    2 * blame->cause_ns[cause] > blame->idle_ns ? "mostly" : "the largest share",
	    causes[cause].because);
	if (culprit && causes[cause].culprit) {
		add(sentence, "; ");
		/* The format comes from the table above. */
		add(sentence, causes[cause].culprit, culprit->name);
	}
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
	u32 percent = (blame_permille(group->straggler.lead_ns, straggler->wall_ns) + 5) / 10;
	bool speaks = group->subject == group->straggler.at;

	add(sentence, formats[group->straggler.is_measured][speaks], straggler->process->rank,
	    percent);
}

/* Only a measured share is mentioned. */
static u32 waiting_share(const struct blame *blame)
{
	u32 share = why_share(blame, blame->waited_ns);

	return blame->waited == WAITED_MEASURED && share >= STRAGGLER_PERMILLE ? share : 0;
}

void why_sentence(const struct why_group *group, char ret[static WHY_SENTENCE_LEN])
{
	struct sentence sentence = { .text = ret };
	const struct blame *blame = &group->blames[group->subject];
	bool is_straggler = group->has_straggler && group->subject == group->straggler.at;
	u32 idle = why_share(blame, blame->idle_ns);
	u32 waits = waiting_share(blame);
	struct unit_text span = unit_ns(blame_watched_ns(blame));

	ret[0] = '\0';
	if (is_straggler)
		add_straggler(&sentence, group);
	add(&sentence, "GPU of %s was ", choose_name(blame->process).text);
	if (idle >= WHY_IDLE_PERMILLE) {
		add(&sentence, "idle %u %% of the last %s", (idle + 5) / 10, span.text);
		add_reason(&sentence, blame);
	} else {
		add(&sentence, "busy %u %% of the last %s", (1000 - idle + 5) / 10, span.text);
		if (is_straggler && group->straggler.is_measured)
			add(&sentence, ": it computes longer than the GPUs of the other ranks");
		else if (waits)
			add(&sentence, ", but waited for other ranks %u %% of that time",
			    (waits + 5) / 10);
		else if (!group->has_straggler)
			add(&sentence, ": nothing to explain");
	}
	add(&sentence, ".");
	if (group->has_straggler && !is_straggler)
		add_straggler(&sentence, group);
}
