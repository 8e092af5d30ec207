/* SPDX-License-Identifier: GPL-2.0-only */
/* What came of an experiment, for people and for programs. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "cli/ab/ab.h"

DEFINE_CLEANUP(struct table, table_free);

static const struct {
	const char *label;
	const char *text;
} ends[AB_END_NR] = {
	[AB_COMPLETE] = { "complete",     NULL					   },
	[AB_TOO_SLOW] = { "too_slow",     NULL					   },
	[AB_INTERRUPTED] = { "interrupted",  "Interrupted"				  },
	[AB_JOB_GONE] = { "job_gone",     "The job, or a part of it, ended"	},
	[AB_ZERNELD_GONE] = { "zerneld_gone", "zerneld ended"			      },
	[AB_REFUSED] = { "refused",	    "zerneld does not switch the scheduler" },
	[AB_EJECTED] = { "ejected",	    "The kernel took the scheduler down"	 },
	[AB_MEDDLED] = { "meddled",	    "Somebody else switched the scheduler"  },
};

static const char *const verdicts[] = {
	[AB_NO_DIFFERENCE] = "no_difference",
	[AB_BETTER] = "better",
	[AB_WORSE] = "worse",
};

static void print_verdict(const struct ab_effect *effect, const struct term *term)
{
	static const struct {
		enum style style;
		const char *text;
	} rows[] = {
		[AB_NO_DIFFERENCE] = { STYLE_TITLE, "No difference shown"	  },
		[AB_BETTER] = { STYLE_GOOD,  "The scheduler helps"	  },
		[AB_WORSE] = { STYLE_BAD,	  "The scheduler does harm" },
	};
	const struct ab_interval *step = &effect->step_change;
	enum ab_verdict verdict = ab_judge(effect);

	term_print(term, rows[verdict].style,
		   "%s: with it a step takes %.1f %% %s time (95 %%: %+.1f to %+.1f %%).\n",
		   rows[verdict].text, 100 * fabs(step->value), step->value < 0 ? "less" : "more",
		   100 * step->low, 100 * step->high);
}

/* Why it ended early, where it did. */
static void print_end(const struct ab_report *report, const struct term *term)
{
	u64 usual_ns = ab_step_ns(&report->usual);
	const struct ab_window *slow = &report->slow;

	if (report->end == AB_COMPLETE)
		return;
	if (report->end != AB_TOO_SLOW) {
		term_print(term, STYLE_WARNING, "%s, after %u of %u pairs.\n",
			   ends[report->end].text, report->nr_pairs, report->plan.nr_pairs);
		return;
	}
	term_print(term, STYLE_BAD, "Stopped: %s the scheduler ",
		   report->found == SCHED_ATTACHED ? "without" : "with");
	if (slow->steps.count == 0)
		term_print(term, STYLE_BAD, "no step ended any more");
	else
		term_print(term, STYLE_BAD, "a step took %s", unit_ns(ab_step_ns(slow)).text);
	term_print(term, STYLE_BAD, ", and %s before.\n", unit_ns(usual_ns).text);
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

static int print_effect(const struct ab_effect *effect, const struct term *term)
{
	static const struct column columns[] = {
		{ "" },
		{ "WITHOUT", true },
		     { "WITH", true },
		       { "CHANGE", true },
		   { "95 %", true },
		{},
	};
	CLEANUP(table_free_cleanup) struct table *table = table_new(columns);

	add_times(table, "step, mean", effect->step_ns, &effect->step_change);
	if (effect->has_p99)
		add_times(table, "step, p99", effect->p99_ns, &effect->p99_change);
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
	const char *found = report->found == SCHED_ATTACHED ? "attached" : "off";

	if (report->end == AB_EJECTED || report->end == AB_MEDDLED)
		term_print(term, STYLE_WARNING,
			   "The scheduler was %s at the start and is left as it is now.\n", found);
	else if (report->restored)
		term_print(term, STYLE_PLAIN, "The scheduler is %s again, as it was.\n", found);
	else
		term_print(term, STYLE_BAD,
			   "The scheduler was %s and could not be brought back to that: systemctl "
			   "restart zerneld\n",
			   found);
}

int ab_print(const struct ab_report *report, const struct term *term)
{
	struct ab_effect effect;
	int err = ab_evaluate(report->pairs, report->nr_pairs, &effect);

	print_end(report, term);
	if (err == 0)
		print_verdict(&effect, term);
	else if (report->end != AB_TOO_SLOW)
		term_print(term, STYLE_PLAIN, "Too little was measured to tell.\n");
	term_print(term, STYLE_PLAIN, "\n");
	if (err == 0) {
		err = print_effect(&effect, term);
		term_print(term, STYLE_PLAIN, "\n");
	}
	term_print(term, STYLE_DIM,
		   "%s: %u of %u pairs of windows, %s each of which the first %s do not count, "
		   "seed %llu.\n",
		   report->subject, report->nr_pairs, report->plan.nr_pairs,
		   unit_ns(report->plan.window_ns).text, unit_ns(report->plan.settle_ns).text,
		   report->seed);
	print_state(report, term);
	return err == -ENODATA ? 0 : err;
}

static void add_interval(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *name,
			 const struct ab_interval *interval)
{
	yyjson_mut_val *values = yyjson_mut_obj_add_obj(doc, object, name);

	yyjson_mut_obj_add_real(doc, values, "value", interval->value);
	yyjson_mut_obj_add_real(doc, values, "low", interval->low);
	yyjson_mut_obj_add_real(doc, values, "high", interval->high);
}

static void add_effect(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct ab_effect *effect)
{
	static const char *const modes[AB_MODE_NR] = { "without", "with" };

	for (u32 mode = 0; mode < AB_MODE_NR; mode++) {
		yyjson_mut_val *values = yyjson_mut_obj_add_obj(doc, root, modes[mode]);

		yyjson_mut_obj_add_uint(doc, values, "steps", effect->nr_steps[mode]);
		yyjson_mut_obj_add_uint(doc, values, "mean_ns", (u64)effect->step_ns[mode]);
		if (effect->has_p99)
			yyjson_mut_obj_add_uint(doc, values, "p99_ns", (u64)effect->p99_ns[mode]);
		yyjson_mut_obj_add_real(doc, values, "busy", effect->busy[mode]);
	}
	add_interval(doc, root, "step_change", &effect->step_change);
	if (effect->has_p99)
		add_interval(doc, root, "p99_change", &effect->p99_change);
	add_interval(doc, root, "busy_change", &effect->busy_change);
}

int ab_print_json(const struct ab_report *report, FILE *out)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	CLEANUP_FREE char *text = NULL;
	struct ab_effect effect;
	bool enough = ab_evaluate(report->pairs, report->nr_pairs, &effect) == 0;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_str(doc, root, "subject", report->subject);
	yyjson_mut_obj_add_str(doc, root, "end", ends[report->end].label);
	yyjson_mut_obj_add_str(doc, root, "verdict",
			       enough ? verdicts[ab_judge(&effect)] : "unknown");
	yyjson_mut_obj_add_str(doc, root, "found", snapshot_sched_state_label(report->found));
	yyjson_mut_obj_add_bool(doc, root, "restored", report->restored);
	yyjson_mut_obj_add_uint(doc, root, "seed", report->seed);
	yyjson_mut_obj_add_uint(doc, root, "pairs", report->nr_pairs);
	yyjson_mut_obj_add_uint(doc, root, "planned_pairs", report->plan.nr_pairs);
	yyjson_mut_obj_add_uint(doc, root, "window_ns", report->plan.window_ns);
	yyjson_mut_obj_add_uint(doc, root, "settle_ns", report->plan.settle_ns);
	yyjson_mut_obj_add_uint(doc, root, "usual_step_ns", ab_step_ns(&report->usual));
	if (report->end == AB_TOO_SLOW)
		yyjson_mut_obj_add_uint(doc, root, "slow_step_ns", ab_step_ns(&report->slow));
	if (enough)
		add_effect(doc, root, &effect);
	text = yyjson_mut_write(doc, 0, NULL);
	yyjson_mut_doc_free(doc);
	return text && fprintf(out, "%s\n", text) > 0 ? 0 : -ENOMEM;
}
