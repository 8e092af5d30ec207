/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The A/B experiment on simulated jobs with a known effect. Their steps depend on each other,
 * have heavy tails, or get slower over time. The tests check the promises of the verdicts.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "core/ab.h"
#include "property/random.h"

#define NR_PAIRS  20
#define STEP_NS	  (20 * NSEC_PER_MSEC)
#define WINDOW_NS (3 * NSEC_PER_SEC)
#define BUSY_NS	  (15 * NSEC_PER_MSEC)

/* How steps vary around their mean. */
struct job {
	const char *name;
	double sigma;  /* standard deviation of the logarithm */
	double memory; /* correlation of a step with the step before it, 0 to 1 */
	double tail;   /* share of steps that take `tail_steps` times as long */
	double tail_steps;
	double drift;  /* relative slowdown from the first step to the last */
	double effect; /* the factor by which the scheduler changes the step time */
	u32 nr_pairs;
	u64 window_ns;
};

static double normal(struct random *r)
{
	return sqrt(-2 * log(random_unit(r))) * cos(6.283185307179586 * random_unit(r));
}

/* Adds steps to a window until its time is over, like a real job. */
static void fill(struct random *r, const struct job *job, double *state, double slower,
		 struct ab_window *window)
{
	u64 now = 0;

	while (now < job->window_ns) {
		double factor;
		u64 step_ns;

		*state = job->memory * *state +
			 sqrt(1 - job->memory * job->memory) * job->sigma * normal(r);
		factor = exp(*state - job->sigma * job->sigma / 2) * slower;
		if (job->tail > 0 && random_unit(r) < job->tail)
			factor *= job->tail_steps;
		step_ns = (u64)(STEP_NS * factor);
		now += step_ns;
		hist_record(&window->steps, step_ns);
		window->busy_ns += BUSY_NS < step_ns ? BUSY_NS : step_ns;
	}
	window->watched_ns = now;
	window->nr_processes = 1;
}

static struct ab_effect experiment(struct random *r, const struct job *job)
{
	struct ab_pair pairs[AB_PAIRS_MAX] = {};
	u64 seed = random_u64(r);
	struct ab_effect effect;
	double state = 0;

	for (u32 i = 0; i < job->nr_pairs; i++) {
		enum ab_mode first = ab_first(seed, i);

		for (u32 k = 0; k < AB_MODE_NR; k++) {
			enum ab_mode mode = k ? !first : first;
			double slower = 1 + job->drift * (2 * i + k) / (2 * job->nr_pairs);

			if (mode == AB_WITH)
				slower *= job->effect;
			fill(r, job, &state, slower, &pairs[i].windows[mode]);
		}
	}
	assert_int_equal(ab_evaluate(pairs, job->nr_pairs, &effect), 0);
	return effect;
}

struct tally {
	u32 nr;
	u32 verdicts[AB_WORSE + 1];
	u32 covered, p99_covered;
	double mean, squares; /* errors of the logarithm of the step change */
};

/* True if `nr` is not below what is expected for this probability, except by chance. */
static bool is_seen(u32 nr, const struct tally *tally, double probability)
{
	double chance = sqrt(probability * (1 - probability) / tally->nr);

	return nr >= (probability - 3 * chance) * tally->nr;
}

static bool contains(const struct ab_interval *interval, double value)
{
	return interval->low <= value && value <= interval->high;
}

static struct tally repeat(struct random *r, const struct job *job)
{
	/* Set AB_RUNS for more runs. The figures of docs/evidence/ab.md use 1000 runs. */
	struct tally tally = { .nr = (u32)random_runs("AB_RUNS", 200) };
	double bias, noise;

	for (u32 run = 0; run < tally.nr; run++) {
		struct ab_effect effect = experiment(r, job);
		double error = log1p(effect.step_change.value) - log(job->effect);

		tally.verdicts[ab_judge(&effect)]++;
		tally.covered += contains(&effect.step_change, job->effect - 1);
		tally.p99_covered +=
			!effect.has_p99 || contains(&effect.p99_change, job->effect - 1);
		tally.mean += error / tally.nr;
		tally.squares += error * error;
	}
	bias = fabs(tally.mean);
	noise = sqrt(tally.squares / tally.nr / tally.nr);
	print_message("# %s: better %u, worse %u, no difference %u; covered %.1f %%, p99 %.1f %%; "
		      "bias %.4f (chance %.4f)\n",
		      job->name, tally.verdicts[AB_BETTER], tally.verdicts[AB_WORSE],
		      tally.verdicts[AB_NO_DIFFERENCE], 100.0 * tally.covered / tally.nr,
		      100.0 * tally.p99_covered / tally.nr, tally.mean, noise);
	assert_true(bias < 3 * noise + 1e-9);
	return tally;
}

#define EQUAL 1.0

static void no_effect_gives_no_difference(void **state)
{
	static const struct job jobs[] = {
		{ "steady", 0.05, 0, 0, 0, 0, EQUAL, NR_PAIRS, WINDOW_NS },
		{ "steady, 6 pairs", 0.05, 0, 0, 0, 0, EQUAL, 6, WINDOW_NS },
		{ "steps that depend on each other", 0.3, 0.99, 0, 0, 0, EQUAL, NR_PAIRS,
		  WINDOW_NS },
		{ "steps that depend on each other, 6 pairs", 0.3, 0.99, 0, 0, 0, EQUAL, 6,
		  WINDOW_NS },
		{ "heavy tail", 0.8, 0, 0.01, 20, 0, EQUAL, NR_PAIRS, WINDOW_NS },
		{ "heavy tail, 10 steps per window", 0.8, 0.5, 0.01, 20, 0, EQUAL, NR_PAIRS,
		  10 * STEP_NS },
		{ "gets slower", 0.1, 0, 0, 0, 1, EQUAL, NR_PAIRS, WINDOW_NS },
	};
	struct random r = random_start();

	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct tally tally = repeat(&r, &jobs[i]);

		assert_true(is_seen(tally.verdicts[AB_NO_DIFFERENCE], &tally, 0.99));
		assert_true(is_seen(tally.covered, &tally, 0.95));
		assert_true(is_seen(tally.p99_covered, &tally, 0.98));
	}
}

static void an_effect_is_found_with_its_size(void **state)
{
	static const struct job jobs[] = {
		{ "steady, 5 % better", 0.05, 0, 0, 0, 0, 0.95, NR_PAIRS, WINDOW_NS },
		{ "2.3 times as fast", 0.3, 0.9, 0, 0, 0, 0.43, NR_PAIRS, WINDOW_NS },
		{ "30 % worse, 6 pairs", 0.1, 0.5, 0, 0, 0, 1.3, 6, WINDOW_NS },
		{ "heavy tail, 30 % better", 0.8, 0, 0.01, 20, 0, 0.7, NR_PAIRS, WINDOW_NS },
		{ "gets slower, 10 % better", 0.1, 0, 0, 0, 1, 0.9, NR_PAIRS, WINDOW_NS },
	};
	struct random r = random_start();

	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct tally tally = repeat(&r, &jobs[i]);
		enum ab_verdict truth = jobs[i].effect < 1 ? AB_BETTER : AB_WORSE;

		assert_true(is_seen(tally.verdicts[truth], &tally, 0.98));
		assert_int_equal(tally.verdicts[truth == AB_BETTER ? AB_WORSE : AB_BETTER], 0);
		assert_true(is_seen(tally.covered, &tally, 0.95));
		assert_true(is_seen(tally.p99_covered, &tally, 0.98));
	}
}

static void a_change_below_1_percent_is_no_difference(void **state)
{
	const struct job job = { "0.5 % better", 0.01, 0, 0, 0, 0, 0.995, NR_PAIRS, WINDOW_NS };
	struct random r = random_start();
	struct tally tally = repeat(&r, &job);

	assert_int_equal(tally.verdicts[AB_NO_DIFFERENCE], tally.nr);
}

static void busy_change_is_a_difference_of_shares(void **state)
{
	const struct job job = { "busy", 0, 0, 0, 0, 0, 1.5, NR_PAIRS, WINDOW_NS };
	struct random r = random_start();
	struct ab_effect effect = experiment(&r, &job);

	assert_float_equal(effect.busy[AB_WITHOUT], 0.75, 0.001);
	assert_float_equal(effect.busy[AB_WITH], 0.5, 0.001);
	assert_float_equal(effect.busy_change.value, -0.25, 0.001);
	assert_float_equal(effect.step_ns[AB_WITH], 1.5 * STEP_NS, 1);
	assert_true(effect.has_p99);
}

static void too_few_measurements_give_no_result(void **state)
{
	struct ab_pair pairs[AB_PAIRS_MIN] = {};
	struct ab_effect effect;

	for (u32 i = 0; i < AB_PAIRS_MIN; i++)
		for (u32 mode = 0; mode < AB_MODE_NR; mode++) {
			hist_record(&pairs[i].windows[mode].steps, STEP_NS);
			pairs[i].windows[mode].watched_ns = WINDOW_NS;
		}
	assert_int_equal(ab_evaluate(pairs, AB_PAIRS_MIN, &effect), 0);
	assert_false(effect.has_p99);
	assert_int_equal(ab_judge(&effect), AB_NO_DIFFERENCE);
	assert_int_equal(ab_evaluate(pairs, AB_PAIRS_MIN - 1, &effect), -ENODATA);
	for (u32 i = 1; i < AB_PAIRS_MIN; i++)
		memset(&pairs[i].windows[AB_WITH].steps, 0, sizeof(struct hist));
	assert_int_equal(ab_evaluate(pairs, AB_PAIRS_MIN, &effect), -ENODATA);
}

static void a_plan_fits_into_the_total_time(void **state)
{
	struct ab_plan plan;
	u64 needed_ns = 0;

	assert_int_equal(ab_plan(300 * NSEC_PER_SEC, STEP_NS, &plan, &needed_ns), 0);
	assert_int_equal(plan.nr_pairs, 20);
	assert_int_equal(plan.window_ns, 7500 * NSEC_PER_MSEC);
	assert_int_equal(plan.settle_ns, 1500 * NSEC_PER_MSEC);
	assert_int_equal(ab_plan(3600 * NSEC_PER_SEC, STEP_NS, &plan, &needed_ns), 0);
	assert_int_equal(plan.nr_pairs, AB_PAIRS_MAX);
	assert_int_equal(plan.settle_ns, 2 * NSEC_PER_SEC);
	/* Long steps get fewer and longer windows. */
	assert_int_equal(ab_plan(300 * NSEC_PER_SEC, NSEC_PER_SEC, &plan, &needed_ns), 0);
	assert_int_equal(plan.nr_pairs, 11);
	assert_true(plan.window_ns - plan.settle_ns >= AB_STEPS_MIN * NSEC_PER_SEC);
	assert_int_equal(ab_plan(60 * NSEC_PER_SEC, NSEC_PER_SEC, &plan, &needed_ns), -ERANGE);
	assert_int_equal(ab_plan(needed_ns, NSEC_PER_SEC, &plan, &needed_ns), 0);
	assert_int_equal(plan.nr_pairs, 6);
	assert_int_equal(ab_plan(6 * NSEC_PER_SEC, STEP_NS, &plan, &needed_ns), 0);
	assert_int_equal(plan.nr_pairs, 6);
	assert_int_equal(ab_plan(0, STEP_NS, &plan, &needed_ns), -ERANGE);
}

static void the_first_mode_is_random_and_depends_on_the_seed(void **state)
{
	u32 nr_with = 0, nr_same = 0;

	for (u64 seed = 0; seed < 1000; seed++)
		for (u32 pair = 0; pair < 20; pair++) {
			nr_with += ab_first(seed, pair) == AB_WITH;
			nr_same += ab_first(seed, pair) == ab_first(seed + 1, pair);
		}
	assert_in_range(nr_with, 9700, 10300);
	assert_in_range(nr_same, 9700, 10300);
}

static struct ab_window steps(u64 nr, u64 step_ns, u64 elapsed_ns)
{
	struct ab_window window = { .watched_ns = elapsed_ns, .nr_processes = 1 };

	for (u64 i = 0; i < nr; i++)
		hist_record(&window.steps, step_ns);
	return window;
}

static void a_slowdown_is_detected_and_chance_is_ignored(void **state)
{
	const struct ab_window usual = steps(100, STEP_NS, 100 * STEP_NS);
	const struct job heavy = { "", 0.8, 0.5, 0.01, 20, 0, EQUAL, 1, 20 * STEP_NS };
	const struct job longer = { "", 0.8, 0.5, 0.01, 20, 0, EQUAL, 1, 10 * WINDOW_NS };
	struct random r = random_start();
	u32 nr_false = 0;
	struct ab_window window;

	window = steps(100, STEP_NS, 100 * STEP_NS);
	assert_false(ab_is_worse(&usual, &window, 1500));
	window = steps(50, 2 * STEP_NS, 100 * STEP_NS);
	assert_true(ab_is_worse(&usual, &window, 1500));
	assert_false(ab_is_worse(&usual, &window, 3000));
	window = steps(70, STEP_NS * 100 / 70, 100 * STEP_NS);
	assert_false(ab_is_worse(&usual, &window, 1500));
	/* No step ends any more. */
	window = steps(0, 0, 9 * STEP_NS);
	assert_false(ab_is_worse(&usual, &window, 1500));
	window = steps(0, 0, 11 * STEP_NS);
	assert_true(ab_is_worse(&usual, &window, 1500));
	/* Two processes should do twice as many steps. */
	window = steps(100, STEP_NS, 200 * STEP_NS);
	window.nr_processes = 2;
	assert_true(ab_is_worse(&usual, &window, 1500));
	for (u32 i = 0; i < 1000; i++) {
		struct ab_window reference = {}, now = {};
		double at = 0;

		fill(&r, &longer, &at, 1, &reference);
		fill(&r, &heavy, &at, 1, &now);
		nr_false += ab_is_worse(&reference, &now, 1500);
	}
	print_message("# heavy tail: %u false alarms in 1000 windows of 20 steps\n", nr_false);
	assert_true(nr_false < 50);
}

static void processes_are_measured_between_snapshots(void **state)
{
	const struct snapshot_limits limits = { 4, 8, 8, 8, 16 };
	const struct ab_key keys[] = { { .pid = 1, .start_ns = 5 }, { .pid = 2, .start_ns = 6 } };
	struct snapshot *s[2];
	struct ab_window window;

	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(snapshot_new(&limits, &s[i]), 0);
		s[i]->monotonic_ns = 1000 + i * WINDOW_NS;
		for (u32 k = 0; k < 2; k++) {
			struct snapshot_process *process = snapshot_add_process(s[i], keys[k].pid);

			process->start_ns = keys[k].start_ns;
			process->busy_ns = i * BUSY_NS;
			hist_record(snapshot_add_hist(s[i], &process->hists, HIST_STEP), 1);
			if (i)
				hist_record(snapshot_add_hist(s[i], &process->hists, HIST_STEP),
					    STEP_NS);
		}
	}
	assert_int_equal(ab_measure(s[0], s[1], keys, 2, &window), 0);
	assert_int_equal(window.nr_processes, 2);
	assert_int_equal(window.steps.count, 2);
	assert_int_equal(window.steps.sum, 2 * STEP_NS);
	assert_int_equal(window.busy_ns, 2 * BUSY_NS);
	assert_int_equal(window.watched_ns, 2 * WINDOW_NS);
	assert_int_equal(ab_measure(s[1], s[0], keys, 2, &window), -ESTALE);
	s[1]->processes[0].start_ns++;
	assert_int_equal(ab_measure(s[0], s[1], keys, 2, &window), 0);
	assert_int_equal(window.nr_processes, 1);
	s[1]->nr_processes = 0;
	assert_int_equal(ab_measure(s[0], s[1], keys, 2, &window), -ESRCH);
	snapshot_free(s[0]);
	snapshot_free(s[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_effect_gives_no_difference),
		cmocka_unit_test(an_effect_is_found_with_its_size),
		cmocka_unit_test(a_change_below_1_percent_is_no_difference),
		cmocka_unit_test(busy_change_is_a_difference_of_shares),
		cmocka_unit_test(too_few_measurements_give_no_result),
		cmocka_unit_test(a_plan_fits_into_the_total_time),
		cmocka_unit_test(the_first_mode_is_random_and_depends_on_the_seed),
		cmocka_unit_test(a_slowdown_is_detected_and_chance_is_ignored),
		cmocka_unit_test(processes_are_measured_between_snapshots),
	};

	return cmocka_run_group_tests_name("ab", tests, NULL, NULL);
}
