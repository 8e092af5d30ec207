/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/why/why_print.h"
#include <errno.h>
#include "answers/choose.h"
#include "answers/job_text.h"
#include "answers/why.h"
#include "base/cleanup.h"
#include "base/user.h"
#include "cli/memory/memory_print.h"

/* Lines of the terminal outside the list of ranks, and the minimum rows of that list. */
#define FIXED_LINES 18
#define ROWS_MIN    3

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

/* "cc1 61%, ld 20%": shares of the cause. A share that rounds to 0 is left out. */
static void add_culprits(struct table *table, const struct blame *blame, u32 cause)
{
	char text[CULPRITS_MAX * (SNAPSHOT_COMM_LEN + 8)] = "";
	size_t used = 0;

	for (u32 i = 0; i < blame->nr_culprits && used < sizeof(text); i++) {
		const struct snapshot_culprit *culprit = &blame->culprits[i];
		u32 percent = (blame_permille(culprit->ns, blame->cause_ns[cause]) + 5) / 10;

		if (culprit->cause == cause && percent > 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %u%%",
						 used ? ", " : "", culprit->name, percent);
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

/* Largest first; equal causes in the order of the enum. */
static void add_causes(struct table *table, const struct snapshot *after, const struct blame *blame)
{
	u32 named = why_cause(after, blame), largest = blame_largest_cause(blame);
	bool shown[IDLE_CAUSE_NR] = {};

	if (named == WHY_NO_CAUSE)
		return;
	while (largest < IDLE_CAUSE_NR) {
		add_row(table, blame, STYLE_PLAIN, why_cause_title(named), blame->cause_ns[largest],
			NULL);
		add_culprits(table, blame, largest);
		shown[largest] = true;
		largest = IDLE_CAUSE_NR;
		for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
			if (!shown[cause] && blame->cause_ns[cause] > 0 &&
			    (largest == IDLE_CAUSE_NR ||
			     blame->cause_ns[cause] > blame->cause_ns[largest]))
				largest = cause;
		named = largest;
	}
}

/* "20.1-65.0%" or "43.0%". */
static void add_range(struct table *table, const struct blame *blame, enum style style, u64 min_ns,
		      u64 max_ns)
{
	u32 min = why_share(blame, min_ns), max = why_share(blame, max_ns);

	table_cell(table, style, "%u.%u-%u.%u%%", min / 10, min % 10, max / 10, max % 10);
}

static void add_idle_share(struct table *table, const struct blame *blame, enum style style)
{
	if (why_is_range(blame))
		add_range(table, blame, style, blame->idle_min_ns, blame->idle_max_ns);
	else
		add_share(table, blame, style, blame->idle_ns);
}

static void add_busy_share(struct table *table, const struct blame *blame, enum style style)
{
	u64 watched_ns = blame_watched_ns(blame);

	if (why_is_range(blame))
		add_range(table, blame, style, watched_ns - blame->idle_max_ns,
			  watched_ns - blame->idle_min_ns);
	else
		add_share(table, blame, style, blame->busy_ns);
}

static void add_idle_and_busy(struct table *table, const struct blame *blame)
{
	table_cell(table, STYLE_WARNING, "idle");
	add_per_step(table, blame, blame->idle_ns);
	add_idle_share(table, blame, STYLE_WARNING);
	table_cell(table, STYLE_DIM, "%s", why_basis(blame));
	if (blame->disagrees)
		add_row(table, blame, STYLE_WARNING, "idle, measured by the driver",
			blame->counter_idle_ns, "");
	table_cell(table, STYLE_GOOD, "busy");
	add_per_step(table, blame, blame->busy_ns);
	add_busy_share(table, blame, STYLE_GOOD);
	table_cell(table, STYLE_DIM, "%s", "");
}

static int print_causes(const struct snapshot *after, const struct blame *blame,
			const struct term *term)
{
	static const struct column columns[] = {
		{ "CAUSE" }, { "MS/STEP", true }, { "OF TIME", true }, { "RESPONSIBLE" }, {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);

	add_causes(table, after, blame);
	add_idle_and_busy(table, blame);
	if (blame->waited != WAITED_UNKNOWN)
		add_row(table, blame, STYLE_PLAIN, "  waiting for other ranks", blame->waited_ns,
			blame->waited == WAITED_MEASURED ? ""
							 : "at most: a busy GPU may work or wait");
	return table_print(table, term);
}

/* Without steps, the times that are certain are still known. */
static void print_no_step(const struct blame *blame, const struct term *term)
{
	u64 watched_ns = blame_watched_ns(blame);

	term_print(
		term, STYLE_PLAIN, "%s; GPU busy for at least %s and idle for at least %s of %s\n",
		blame->process->step_basis == STEP_BASIS_NONE ? "no steps found" : "no step ended",
		unit_ns(watched_ns - blame->idle_max_ns).text, unit_ns(blame->idle_min_ns).text,
		unit_ns(watched_ns).text);
}

static void print_steps(const struct blame *blame, const struct term *term)
{
	static const char *const bases[STEP_BASIS_NR] = {
		[STEP_BASIS_NONE] = "",
		[STEP_BASIS_SYNC] = " by syncs",
		[STEP_BASIS_ITERATION] = " by iterations",
		[STEP_BASIS_OPTIMIZER] = " by optimizer scopes",
	};
	const struct hist *steps = &blame->steps;
	u32 basis = blame->process->step_basis;

	term_print(term, STYLE_DIM, "%s: ", choose_name(blame->process).text);
	if (blame->nr_steps == 0 || steps->count == 0) {
		print_no_step(blame, term);
		return;
	}
	term_print(term, STYLE_PLAIN, "%llu steps%s, mean %s, p50 %s, p99 %s\n", blame->nr_steps,
		   bases[basis < STEP_BASIS_NR ? basis : STEP_BASIS_NONE],
		   unit_ns(hist_mean(steps)).text, unit_ns(hist_quantile(steps, 500)).text,
		   unit_ns(hist_quantile(steps, 990)).text);
}

static void add_rank(struct table *table, const struct snapshot *after, const struct blame *blame,
		     bool is_subject)
{
	const struct snapshot_process *process = blame->process;
	u32 cause = why_cause(after, blame);

	if (process->nr_ranks)
		table_cell(table, is_subject ? STYLE_TITLE : STYLE_PLAIN, "%d", process->rank);
	else
		table_cell(table, STYLE_DIM, "-");
	table_cell(table, STYLE_PLAIN, "%u", process->pid);
	table_cell(table, STYLE_PLAIN, "%s%s", process->comm,
		   snapshot_is_unproven(after, process) ? " (unproven)" : "");
	table_cell(table, STYLE_PLAIN, "%s",
		   blame->steps.count ? unit_ns(hist_mean(&blame->steps)).text : "-");
	add_busy_share(table, blame, STYLE_PLAIN);
	add_idle_share(table, blame, STYLE_PLAIN);
	if (blame->waited == WAITED_UNKNOWN)
		table_cell(table, STYLE_DIM, "-");
	else
		table_cell(table, STYLE_PLAIN, "%s%u.%u%%",
			   blame->waited == WAITED_AT_MOST ? "<" : "",
			   why_share(blame, blame->waited_ns) / 10,
			   why_share(blame, blame->waited_ns) % 10);
	table_cell(table, STYLE_PLAIN, "%s", cause != WHY_NO_CAUSE ? why_cause_title(cause) : "");
}

static int print_ranks(const struct why_group *group, const struct term *term)
{
	static const struct column columns[] = {
		{ "RANK", true },  { "PID", true },	{ "COMMAND" },
		{ "STEP", true },  { "BUSY", true },	{ "IDLE", true },
		{ "WAITS", true }, { "LARGEST CAUSE" }, {},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);
	u32 room = term->height > FIXED_LINES + ROWS_MIN ? term->height - FIXED_LINES : ROWS_MIN;
	u32 shown = term->height && group->nr > room ? room : group->nr;
	int err;

	for (u32 i = 0; i < shown; i++)
		add_rank(table, group->after, &group->blames[i], i == group->subject);
	err = table_print(table, term);
	if (shown < group->nr)
		term_print(term, STYLE_DIM, "... and %u more: use --json to see all\n",
			   group->nr - shown);
	term_print(term, STYLE_PLAIN, "\n");
	return err;
}

/* The line below the answer: the job, its user and its names, if more than the job is known. */
static void print_job(const struct why_group *group, const struct term *term)
{
	const struct snapshot_job *job = snapshot_job(group->after, group->blames->process);
	struct job_text text = {};

	if (job)
		text = job_describe(job, user_name(job->uid).text);
	if (*text.text)
		term_print(term, STYLE_DIM, "%s: %s\n", job->name, text.text);
}

static int print_group(const struct why_group *group, const struct term *term)
{
	const struct blame *subject = &group->blames[group->subject];
	char sentence[WHY_SENTENCE_LEN], advice[WHY_ADVICE_MAX][WHY_ADVICE_LEN];
	u32 nr_advice = why_advice(group, advice);
	int err = 0;

	why_sentence(group, sentence);
	term_print(term, STYLE_TITLE, "%s\n", sentence);
	print_job(group, term);
	term_print(term, STYLE_PLAIN, "\n");
	if (group->nr > 1 && !group->asked_for_one)
		err = print_ranks(group, term);
	print_steps(subject, term);
	if (snapshot_is_unproven(group->after, subject->process))
		term_print(term, STYLE_WARNING,
			   "unproven: process %u has opened no GPU, so the scheduler does not "
			   "promote it\n",
			   subject->process->pid);
	if (err == 0)
		err = print_causes(group->after, subject, term);
	if (nr_advice)
		term_print(term, STYLE_PLAIN, "\n");
	for (u32 i = 0; i < nr_advice; i++)
		term_print(term, STYLE_PLAIN, "-> %s\n", advice[i]);
	return err;
}

static int print_text(const struct why *why, const struct term *term)
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
		term_print(term, STYLE_WARNING, "%s: no answer, because %s.\n",
			   choose_name(why->missing[i].process).text,
			   why_missing_text(why->missing[i].err));
	if (!why->nr_blames && !why->nr_missing)
		term_print(term, STYLE_PLAIN, "%s\n",
			   why->after->nr_processes ? "No matching process or job uses a GPU."
						    : "No process uses a GPU.");
	return err;
}

static int print_json(const struct why *why, FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = why_to_json(why, &text, &length);

	if (err < 0)
		return err;
	return fprintf(out, "%s\n", text) > 0 ? 0 : -EIO;
}

int why_print(const struct snapshot *before, const struct snapshot *after,
	      const struct why_options *options, const struct term *term)
{
	CLEANUP(why_free_cleanup) struct why *why = NULL;
	int err = why_new(before, after, options->who, &why);

	if (err < 0)
		return err;
	err = options->json ? print_json(why, term->out) : print_text(why, term);
	if (err < 0)
		return err;
	return why->nr_blames ? 0 : -ENOENT;
}

static void print_life(const struct snapshot_job *job, const struct term *term)
{
	u64 lasted_ms = job->ended_ms > job->started_ms ? job->ended_ms - job->started_ms : 0;

	term_print(term, STYLE_DIM, "%s ended %s after %s; peak GPU memory of a process %s\n",
		   job->name, unit_local_time(job->ended_ms).text,
		   unit_ns(lasted_ms * NSEC_PER_MSEC).text, unit_bytes(job->peak_bytes).text);
	if (job->nr_left_out)
		term_print(term, STYLE_WARNING,
			   "%llu processes of this job are not part of the answer\n",
			   job->nr_left_out);
}

int why_print_ended(struct snapshot *ended, const struct memory_report *memory, bool json,
		    const struct term *term)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *before = NULL;
	int err = why_ended_span(ended, &before);

	if (err < 0)
		return err;
	if (!json && ended->nr_jobs) {
		print_life(&ended->jobs[0], term);
		memory_print_ooms(memory, term);
	}
	return why_print(before, ended, &(struct why_options){ .json = json }, term);
}
