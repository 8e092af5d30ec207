/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/ab_report.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <yyjson.h>
#include "base/units.h"

static const struct {
	const char *label;
	const char *text;
} ends[AB_END_NR] = {
	[AB_COMPLETE] = { "complete", NULL },
	[AB_TOO_SLOW] = { "too_slow", NULL },
	[AB_INTERRUPTED] = { "interrupted", "Interrupted" },
	[AB_JOB_GONE] = { "job_gone", "The job, or a process of it, ended" },
	[AB_ZERNELD_GONE] = { "zerneld_gone", "The connection to zerneld was lost" },
	[AB_REFUSED] = { "refused", "zerneld refused to switch the scheduler" },
	[AB_EJECTED] = { "ejected", "The kernel ejected the scheduler" },
	[AB_MEDDLED] = { "meddled", "Another client switched the scheduler" },
};

static const char *const verdicts[] = {
	[AB_NO_DIFFERENCE] = "no_difference",
	[AB_BETTER] = "better",
	[AB_WORSE] = "worse",
};

/* What the experiment switches on and off. */
static const char *subject_of(const struct ab_report *report)
{
	return report->actuator == ACTUATOR_NICE || report->found == ACTUATOR_NICE ? "nice actuator"
										   : "scheduler";
}

void ab_verdict_sentence(const struct ab_report *report, const struct ab_effect *effect,
			 char ret[static AB_SENTENCE_LEN])
{
	static const char *const texts[] = {
		[AB_NO_DIFFERENCE] = "No significant difference: with the %s",
		[AB_BETTER] = "The %s helps: with it",
		[AB_WORSE] = "The %s slows the job down: with it",
	};
	const struct ab_interval *step = &effect->step_change;
	char verdict[64];

	snprintf(verdict, sizeof(verdict), texts[ab_judge(effect)], subject_of(report));
	snprintf(ret, AB_SENTENCE_LEN,
		 "%s, a step takes %.1f %% %s time (95 %% interval: %+.1f to %+.1f %%).", verdict,
		 100 * fabs(step->value), step->value < 0 ? "less" : "more", 100 * step->low,
		 100 * step->high);
}

bool ab_end_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN])
{
	const char *mode = report->found == ACTUATOR_NONE ? "with" : "without";
	struct unit_text usual = unit_ns(ab_step_ns(&report->usual));

	if (report->end == AB_COMPLETE)
		return false;
	if (report->end != AB_TOO_SLOW)
		snprintf(ret, AB_SENTENCE_LEN, "%s after %u of %u pairs.", ends[report->end].text,
			 report->nr_pairs, report->plan.nr_pairs);
	else if (report->slow.steps.count == 0)
		snprintf(ret, AB_SENTENCE_LEN,
			 "Stopped: %s the %s, no step ended. Before, a step took %s.", mode,
			 subject_of(report), usual.text);
	else
		snprintf(ret, AB_SENTENCE_LEN,
			 "Stopped: %s the %s, a step took %s. Before, a step took %s.", mode,
			 subject_of(report), unit_ns(ab_step_ns(&report->slow)).text, usual.text);
	return true;
}

void ab_plan_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN])
{
	snprintf(ret, AB_SENTENCE_LEN,
		 "%s: %u of %u pairs of windows, %s per window, the first %s of each window "
		 "not counted, seed %llu.",
		 report->subject, report->nr_pairs, report->plan.nr_pairs,
		 unit_ns(report->plan.window_ns).text, unit_ns(report->plan.settle_ns).text,
		 report->seed);
}

void ab_state_sentence(const struct ab_report *report, char ret[static AB_SENTENCE_LEN])
{
	static const char *const states[ACTUATOR_NR] = {
		[ACTUATOR_NONE] = "off",
		[ACTUATOR_SCHED_EXT] = "attached",
		[ACTUATOR_NICE] = "on",
	};
	const char *format = report->end == AB_EJECTED || report->end == AB_MEDDLED
				     ? "The %s was %s at the start. It stays in its current state."
			     : report->restored
				     ? "The %s is %s again, as at the start."
				     : "The %s was %s at the start, but that state could not be "
				       "restored. Run: systemctl restart zerneld";

	snprintf(ret, AB_SENTENCE_LEN, format, subject_of(report), states[report->found]);
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

int ab_to_json(const struct ab_report *report, char **ret, size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	char *text;
	struct ab_effect effect;
	bool enough = ab_evaluate(report->pairs, report->nr_pairs, &effect) == 0;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_str(doc, root, "subject", report->subject);
	yyjson_mut_obj_add_str(doc, root, "end", ends[report->end].label);
	yyjson_mut_obj_add_str(doc, root, "verdict",
			       enough ? verdicts[ab_judge(&effect)] : "unknown");
	yyjson_mut_obj_add_str(doc, root, "found",
			       snapshot_sched_state_label(report->found == ACTUATOR_NONE
								  ? SCHED_OFF
								  : SCHED_ATTACHED));
	yyjson_mut_obj_add_str(doc, root, "actuator", snapshot_actuator_label(report->actuator));
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
	text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
