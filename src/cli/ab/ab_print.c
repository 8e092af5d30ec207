/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the result of an experiment. */
#include <errno.h>
#include "base/cleanup.h"
#include "cli/ab/ab.h"

static void print_verdict(const struct ab_report *report, const struct ab_effect *effect,
			  const struct term *term)
{
	static const enum style styles[] = {
		[AB_NO_DIFFERENCE] = STYLE_TITLE,
		[AB_BETTER] = STYLE_GOOD,
		[AB_WORSE] = STYLE_BAD,
	};
	char sentence[AB_SENTENCE_LEN];

	ab_verdict_sentence(report, effect, sentence);
	term_print(term, styles[ab_judge(effect)], "%s\n", sentence);
}

static void print_end(const struct ab_report *report, const struct term *term)
{
	enum style style = report->end == AB_TOO_SLOW ? STYLE_BAD : STYLE_WARNING;
	char sentence[AB_SENTENCE_LEN];

	if (ab_end_sentence(report, sentence))
		term_print(term, style, "%s\n", sentence);
}

static void add_change(struct table *table, const struct ab_interval *change, const char *unit)
{
	table_cell(table, STYLE_PLAIN, "%+.1f%s", 100 * change->value, unit);
	table_cell(table, STYLE_PLAIN, "%+.1f to %+.1f%s", 100 * change->low, 100 * change->high,
		   unit);
}

static void add_times(struct table *table, const char *title, const double *ns,
		      const struct ab_interval *change)
{
	table_cell(table, STYLE_PLAIN, "%s", title);
	for (u32 mode = 0; mode < AB_MODE_NR; mode++)
		table_cell(table, STYLE_PLAIN, "%s", unit_ns((u64)ns[mode]).text);
	add_change(table, change, " %");
}

static int print_effect(const struct ab_report *report, const struct ab_effect *effect,
			const struct term *term)
{
	static const struct column columns[] = {
		{ "MEASURE" },	    { "SCHEDULER OFF", true }, { "SCHEDULER ON", true },
		{ "CHANGE", true }, { "95 % INTERVAL", true }, {},
	};
	static const struct column nice_columns[] = {
		{ "MEASURE" },	    { "NICE OFF", true },      { "NICE ON", true },
		{ "CHANGE", true }, { "95 % INTERVAL", true }, {},
	};
	CLEANUP(table_free_cleanup)
	struct table *table = table_new(report->actuator == ACTUATOR_NICE ? nice_columns : columns);

	add_times(table, "step time, mean", effect->step_ns, &effect->step_change);
	if (effect->has_p99)
		add_times(table, "step time, p99", effect->p99_ns, &effect->p99_change);
	table_cell(table, STYLE_PLAIN, "GPU busy");
	for (u32 mode = 0; mode < AB_MODE_NR; mode++)
		table_cell(table, STYLE_PLAIN, "%.1f %%", 100 * effect->busy[mode]);
	add_change(table, &effect->busy_change, " points");
	table_cell(table, STYLE_PLAIN, "steps");
	for (u32 mode = 0; mode < AB_MODE_NR; mode++)
		table_cell(table, STYLE_PLAIN, "%llu", effect->nr_steps[mode]);
	return table_print(table, term);
}

static void print_state(const struct ab_report *report, const struct term *term)
{
	bool is_left = report->end == AB_EJECTED || report->end == AB_MEDDLED;
	enum style style = is_left ? STYLE_WARNING : report->restored ? STYLE_PLAIN : STYLE_BAD;
	char sentence[AB_SENTENCE_LEN];

	ab_state_sentence(report, sentence);
	term_print(term, style, "%s\n", sentence);
}

int ab_print(const struct ab_report *report, const struct term *term)
{
	char plan[AB_SENTENCE_LEN];
	struct ab_effect effect;
	int err = ab_evaluate(report->pairs, report->nr_pairs, &effect);

	print_end(report, term);
	if (err == 0)
		print_verdict(report, &effect, term);
	else if (report->end != AB_TOO_SLOW)
		term_print(term, STYLE_PLAIN, "Not enough data for a verdict.\n");
	term_print(term, STYLE_PLAIN, "\n");
	if (err == 0) {
		err = print_effect(report, &effect, term);
		term_print(term, STYLE_PLAIN, "\n");
	}
	ab_plan_sentence(report, plan);
	term_print(term, STYLE_DIM, "%s\n", plan);
	print_state(report, term);
	return err == -ENODATA ? 0 : err;
}

int ab_print_json(const struct ab_report *report, FILE *out)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = ab_to_json(report, &text, &length);

	if (err < 0)
		return err;
	return fprintf(out, "%s\n", text) > 0 ? 0 : -EIO;
}
