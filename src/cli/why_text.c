/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdarg.h>
#include "base/cleanup.h"
#include "cli/choose.h"
#include "cli/why_internal.h"

DEFINE_CLEANUP(struct table, table_free);

/* Lines of a terminal that are not the list of ranks, and the fewest ranks it gets. */
#define FIXED_LINES 18
#define ROWS_MIN    3

static const struct {
	const char *title;
	const char *because;
	const char *culprit; /* what somebody did who is named, or NULL */
} causes[IDLE_CAUSE_NR] = {
	[IDLE_CPU] = { "launcher computed",	    "its launching thread computed",	     NULL },
	[IDLE_RUNQUEUE] = { "launcher waited for a CPU",	 "its launching thread waited for a CPU",
			    "%s ran instead"								},
	[IDLE_LOADER_CPU] = { "loaders computed",		  "loaders still computed its data",	     NULL },
	[IDLE_LOADER_RUNQUEUE] = { "loaders waited for a CPU",     "loaders waited for a CPU",
			   "%s ran instead"								},
	[IDLE_LOADER_DISK] = { "loaders waited for a disk",    "loaders waited for a disk",
		       "it was %s"								     },
	[IDLE_LOADER_OTHER] = { "loaders waited otherwise",
			"loaders waited for neither CPU nor disk",				   NULL },
	[IDLE_COLLECTIVE] = { "launcher waited for ranks",
		      "its launching thread waited for other ranks",			     NULL },
	[IDLE_DISK] = { "launcher waited for a disk",   "its launching thread waited for a disk",
			"it was %s"								     },
	[IDLE_MEMORY] = { "launcher waited for memory",	"its launching thread waited for memory",
			  NULL									    },
	[IDLE_LOCK] = { "launcher waited for a thread",
			"its launching thread waited for another thread",			  NULL },
	[IDLE_OTHER] = { "launcher slept",		   "its launching thread slept",		 NULL },
};

const char *why_cause_title(u32 cause)
{
	return causes[cause].title;
}

const char *why_missing_text(int err)
{
	switch (err) {
	case -ESRCH: return "began meanwhile";
	case -ENODATA: return "launched nothing yet";
	default: return "its counters began anew: zerneld was restarted";
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
	    2 * blame->cause_ns[cause] > blame->idle_ns ? "most of it" : "the largest part",
	    causes[cause].because);
	if (culprit && causes[cause].culprit) {
		add(sentence, "; ");
		/* The formats are those of the table above. */
		add(sentence, causes[cause].culprit, culprit->name);
	}
}

/* Who is the straggler says so first; whoever waits for it says so last. */
static void add_straggler(struct sentence *sentence, const struct why_group *group)
{
	const struct blame *straggler = &group->blames[group->straggler.at];
	u32 percent = (blame_permille(group->straggler.lead_ns, straggler->wall_ns) + 5) / 10;

	if (group->subject == group->straggler.at)
		add(sentence, "Rank %d holds up the others: they wait %u %% of the time for it. ",
		    straggler->process->rank, percent);
	else
		add(sentence, " Rank %d holds it up in collectives, %u %% of the time.",
		    straggler->process->rank, percent);
}

/* Worth a word only where it was measured. */
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
		if (is_straggler)
			add(&sentence, ": it computes longer than the others'");
		else if (waits)
			add(&sentence, ", but %u %% only waited for other ranks", (waits + 5) / 10);
		else if (!group->has_straggler)
			add(&sentence, ": nothing to explain");
	}
	add(&sentence, ".");
	if (group->has_straggler && !is_straggler)
		add_straggler(&sentence, group);
}

static void add_per_step(struct table *table, const struct blame *blame, u64 ns)
{
	if (blame->nr_steps)
		table_cell(table, STYLE_PLAIN, "%.2f",
			   (double)ns / (double)blame->nr_steps / (double)NSEC_PER_MSEC);
	else
		table_cell(table, STYLE_DIM, "-");
}

static void add_share(struct table *table, const struct blame *blame, enum style style, u64 ns)
{
	u32 share = why_share(blame, ns);

	table_cell(table, style, "%u.%u%%", share / 10, share % 10);
}

/* "cc1 61%, ld 20%" of the cause. */
static void add_culprits(struct table *table, const struct blame *blame, u32 cause)
{
	char text[CULPRITS_MAX * (SNAPSHOT_COMM_LEN + 8)] = "";
	size_t used = 0;

	for (u32 i = 0; i < blame->nr_culprits && used < sizeof(text); i++) {
		const struct snapshot_culprit *culprit = &blame->culprits[i];

		if (culprit->cause == cause)
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s%s %u%%", used ? ", " : "",
				culprit->name,
				(blame_permille(culprit->ns, blame->cause_ns[cause]) + 5) / 10);
	}
	table_cell(table, STYLE_PLAIN, "%s", text);
}

static void add_row(struct table *table, const struct blame *blame, enum style style,
		    const char *title, u64 ns, const char *note)
{
	table_cell(table, style, "%s", title);
	add_per_step(table, blame, ns);
	add_share(table, blame, style, ns);
	if (note)
		table_cell(table, STYLE_DIM, "%s", note);
}

/* The largest first; of equals in their order. */
static void add_causes(struct table *table, const struct blame *blame)
{
	u32 largest = blame_largest_cause(blame);
	bool shown[IDLE_CAUSE_NR] = {};

	while (largest < IDLE_CAUSE_NR) {
		add_row(table, blame, STYLE_PLAIN, causes[largest].title, blame->cause_ns[largest],
			NULL);
		add_culprits(table, blame, largest);
		shown[largest] = true;
		largest = IDLE_CAUSE_NR;
		for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
			if (!shown[cause] && blame->cause_ns[cause] > 0 &&
			    (largest == IDLE_CAUSE_NR ||
			     blame->cause_ns[cause] > blame->cause_ns[largest]))
				largest = cause;
	}
}

static int print_causes(const struct blame *blame, const struct term *term)
{
	static const struct column columns[] = {
		{ "CAUSE" },
		     { "MS/STEP", true },
		  { "OF TIME", true },
		       { "WHO" },
		  {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);

	add_causes(table, blame);
	add_row(table, blame, STYLE_WARNING, "idle", blame->idle_ns, "");
	add_row(table, blame, STYLE_GOOD, "busy", blame->busy_ns, "");
	if (blame->waited != WAITED_UNKNOWN)
		add_row(table, blame, STYLE_PLAIN, "  waiting for other ranks", blame->waited_ns,
			blame->waited == WAITED_MEASURED
				? ""
				: "at most: the device does not tell when it works");
	return table_print(table, term);
}

static void print_steps(const struct blame *blame, const struct term *term)
{
	const struct hist *steps = &blame->steps;

	term_print(term, STYLE_DIM, "%s: ", choose_name(blame->process).text);
	if (blame->nr_steps == 0 || steps->count == 0) {
		term_print(term, STYLE_PLAIN, "no step ended\n");
		return;
	}
	term_print(term, STYLE_PLAIN, "%llu steps, mean %s, p50 %s, p99 %s\n", blame->nr_steps,
		   unit_ns(hist_mean(steps)).text, unit_ns(hist_quantile(steps, 500)).text,
		   unit_ns(hist_quantile(steps, 990)).text);
}

static void add_rank(struct table *table, const struct blame *blame, bool is_subject)
{
	const struct snapshot_process *process = blame->process;
	u32 cause = blame_largest_cause(blame);

	if (process->nr_ranks)
		table_cell(table, is_subject ? STYLE_TITLE : STYLE_PLAIN, "%d", process->rank);
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%u", process->pid);
	table_cell(table, STYLE_PLAIN, "%s", process->comm);
	table_cell(table, STYLE_PLAIN, "%s",
		   blame->steps.count ? unit_ns(hist_mean(&blame->steps)).text : "-");
	add_share(table, blame, STYLE_PLAIN, blame->busy_ns);
	add_share(table, blame, STYLE_PLAIN, blame->idle_ns);
	if (blame->waited == WAITED_UNKNOWN)
		table_cell(table, STYLE_DIM, "-");
	else
		table_cell(table, STYLE_PLAIN, "%s%u.%u%%",
			   blame->waited == WAITED_AT_MOST ? "<" : "",
			   why_share(blame, blame->waited_ns) / 10,
			   why_share(blame, blame->waited_ns) % 10);
	table_cell(table, STYLE_PLAIN, "%s", cause < IDLE_CAUSE_NR ? causes[cause].title : "");
}

static int print_ranks(const struct why_group *group, const struct term *term)
{
	static const struct column columns[] = {
		{ "RANK", true },
		   { "PID", true },
		      { "COMMAND" },
		{ "STEP", true },
		   { "BUSY", true },
		      { "IDLE", true },
		{ "WAITS", true },
		   { "IDLE MOSTLY" },
		      {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);
	u32 room = term->height > FIXED_LINES + ROWS_MIN ? term->height - FIXED_LINES : ROWS_MIN;
	u32 shown = term->height && group->nr > room ? room : group->nr;
	int err;

	for (u32 i = 0; i < shown; i++)
		add_rank(table, &group->blames[i], i == group->subject);
	err = table_print(table, term);
	if (shown < group->nr)
		term_print(term, STYLE_DIM, "... and %u more: --json has all of them\n",
			   group->nr - shown);
	term_print(term, STYLE_PLAIN, "\n");
	return err;
}

static int print_group(const struct why_group *group, const struct term *term)
{
	const struct blame *subject = &group->blames[group->subject];
	char sentence[WHY_SENTENCE_LEN], advice[WHY_ADVICE_MAX][WHY_ADVICE_LEN];
	u32 nr_advice = why_advice(group, advice);
	int err = 0;

	why_sentence(group, sentence);
	term_print(term, STYLE_TITLE, "%s\n", sentence);
	term_print(term, STYLE_PLAIN, "\n");
	if (group->nr > 1 && !group->asked_for_one)
		err = print_ranks(group, term);
	print_steps(subject, term);
	if (err == 0)
		err = print_causes(subject, term);
	if (nr_advice)
		term_print(term, STYLE_PLAIN, "\n");
	for (u32 i = 0; i < nr_advice; i++)
		term_print(term, STYLE_PLAIN, "-> %s\n", advice[i]);
	return err;
}

int why_print_text(const struct why *why, const struct term *term)
{
	int err = 0;

	for (u32 first = 0; err == 0 && first < why->nr_blames;) {
		struct why_group group = why_group(why, first);

		if (first)
			term_print(term, STYLE_PLAIN, "\n");
		err = print_group(&group, term);
		first += group.nr;
	}
	for (u32 i = 0; i < why->nr_missing; i++)
		term_print(term, STYLE_WARNING, "%s: no answer, %s.\n",
			   choose_name(why->missing[i].process).text,
			   why_missing_text(why->missing[i].err));
	if (!why->nr_blames && !why->nr_missing)
		term_print(term, STYLE_PLAIN, "%s\n",
			   why->after->nr_processes ? "No such process or job uses a GPU."
						    : "No process uses a GPU.");
	return err;
}
