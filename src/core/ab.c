/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/ab.h"
#include <errno.h>
#include <math.h>
#include "base/macros.h"
#include "core/blame.h"

#define PAIRS_WANTED	 20
#define WINDOW_WANTED_NS (15 * NSEC_PER_SEC / 2)
#define WINDOW_MIN_NS	 (NSEC_PER_SEC / 2)
#define SETTLE_MIN_NS	 (NSEC_PER_SEC / 10)
#define SETTLE_MAX_NS	 (2 * NSEC_PER_SEC)
/* The settling time is 1/SETTLE_PART of a window. */
#define SETTLE_PART	 5

#define P99_STEPS_MIN 500
/* A deviation of this many standard errors is not explained by chance. */
#define CHANCE	      5
#define CHANGE_MIN    0.01

static int measure_process(const struct snapshot *before, const struct snapshot *after,
			   const struct snapshot_process *then, const struct snapshot_process *now,
			   struct ab_window *window)
{
	const struct hist *old = snapshot_hist(before, &then->hists, HIST_STEP);
	const struct hist *new = snapshot_hist(after, &now->hists, HIST_STEP);
	const struct hist none = {};
	struct hist steps;

	if (now->busy_ns < then->busy_ns || after->monotonic_ns <= before->monotonic_ns ||
	    hist_subtract(new ? new : &none, old ? old : &none, &steps) < 0)
		return -ESTALE;
	hist_add(&window->steps, &steps);
	window->busy_ns += now->busy_ns - then->busy_ns;
	window->watched_ns += after->monotonic_ns - before->monotonic_ns;
	window->nr_processes++;
	return 0;
}

int ab_measure(const struct snapshot *before, const struct snapshot *after,
	       const struct ab_key *keys, u32 nr, struct ab_window *ret)
{
	struct ab_window window = {};

	for (u32 i = 0; i < nr; i++) {
		const struct snapshot_process *then =
			blame_find(before, keys[i].pid, keys[i].start_ns);
		const struct snapshot_process *now =
			blame_find(after, keys[i].pid, keys[i].start_ns);

		if (then && now && measure_process(before, after, then, now, &window) < 0)
			return -ESTALE;
	}
	if (window.nr_processes == 0)
		return -ESRCH;
	*ret = window;
	return 0;
}

void ab_add(struct ab_window *to, const struct ab_window *from)
{
	hist_add(&to->steps, &from->steps);
	to->busy_ns += from->busy_ns;
	to->watched_ns += from->watched_ns;
	if (from->nr_processes > to->nr_processes)
		to->nr_processes = from->nr_processes;
}

u64 ab_step_ns(const struct ab_window *window)
{
	return window->steps.count ? window->watched_ns / window->steps.count : 0;
}

static u64 at_least(u64 value, u64 least)
{
	return value > least ? value : least;
}

static u64 at_most(u64 value, u64 most)
{
	return value < most ? value : most;
}

int ab_plan(u64 total_ns, u64 step_ns, struct ab_plan *ret, u64 *ret_needed_ns)
{
	/* AB_STEPS_MIN steps must fit into the window after the settling time. */
	u64 steps_ns = AB_STEPS_MIN * step_ns;
	u64 least_ns = at_least(WINDOW_MIN_NS, steps_ns + steps_ns / (SETTLE_PART - 1) + 1);
	u64 nr_pairs = at_least(total_ns / (2 * WINDOW_WANTED_NS), PAIRS_WANTED);

	nr_pairs = at_most(at_most(nr_pairs, total_ns / (2 * least_ns)), AB_PAIRS_MAX);
	if (nr_pairs < AB_PAIRS_PLANNED_MIN) {
		*ret_needed_ns = AB_PAIRS_PLANNED_MIN * 2 * least_ns;
		return -ERANGE;
	}
	*ret = (struct ab_plan){
		.nr_pairs = (u32)nr_pairs,
		.window_ns = total_ns / (2 * nr_pairs),
	};
	ret->settle_ns =
		at_most(at_least(ret->window_ns / SETTLE_PART, SETTLE_MIN_NS), SETTLE_MAX_NS);
	return 0;
}

/* A random bit per pair, derived from the seed with the splitmix64 generator. */
enum ab_mode ab_first(u64 seed, u32 pair)
{
	u64 x = seed + (pair + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x >> 63 ? AB_WITH : AB_WITHOUT;
}

static double spread_of(const struct hist *steps)
{
	double mean = (double)hist_mean(steps), squares = 0;

	for (u32 slot = 0; slot < HIST_SLOTS; slot++) {
		double value = (double)at_most(hist_middle(slot), steps->max);

		squares += (double)steps->buckets[slot] * (value - mean) * (value - mean);
	}
	return sqrt(squares / (double)steps->count);
}

bool ab_is_worse(const struct ab_window *reference, const struct ab_window *window,
		 u32 bound_permille)
{
	double usual_ns = (double)ab_step_ns(reference);
	/* Each process has one unfinished step. It counts, because that step may hang. */
	double nr = (double)(window->steps.count + window->nr_processes);
	double step_ns = (double)window->watched_ns / nr;

	if (!window->nr_processes || reference->steps.count < AB_STEPS_MIN ||
	    (double)window->watched_ns < AB_STEPS_MIN * usual_ns * window->nr_processes)
		return false;
	return step_ns >
	       usual_ns * bound_permille / 1000 + CHANCE * spread_of(&reference->steps) / sqrt(nr);
}

/* Interpolates between the bounds of the bucket, by the rank inside the bucket. */
static double quantile(const struct hist *steps, double q)
{
	double rank = q * (double)steps->count, below = 0, inside;
	u32 slot = 0;

	while (slot < HIST_OVERFLOW - 1 && below + (double)steps->buckets[slot] < rank)
		below += (double)steps->buckets[slot++];
	if (slot == 0)
		return 1;
	inside = steps->buckets[slot] ? (rank - below) / (double)steps->buckets[slot] : 1;
	return exp2(((double)slot - 1 - HIST_SCHEMA_OFFSET + inside) / 4) * (double)NSEC_PER_SEC;
}

static double mean_of(const struct ab_window *window)
{
	return (double)window->steps.sum / (double)window->steps.count;
}

static double p99_of(const struct ab_window *window)
{
	return quantile(&window->steps, 0.99);
}

static double busy_of(const struct ab_window *window)
{
	return (double)window->busy_ns / (double)window->watched_ns;
}

/* A compared figure, and whether it is compared as a ratio or as a difference. */
struct figure {
	double (*of)(const struct ab_window *window);
	bool ratio;
	double error; /* measurement error of each value, in the unit of the change */
};

static double change(const struct figure *figure, const struct ab_pair *all)
{
	double without = figure->of(&all->windows[AB_WITHOUT]);
	double with = figure->of(&all->windows[AB_WITH]);

	return figure->ratio ? log(with / without) : with - without;
}

/* Subtracts one pair from the sum. The pair must be part of the sum. */
static struct ab_pair leave_out(const struct ab_pair *all, const struct ab_pair *pair)
{
	struct ab_pair rest = *all;

	for (u32 mode = 0; mode < AB_MODE_NR; mode++) {
		struct ab_window *window = &rest.windows[mode];

		hist_subtract(&all->windows[mode].steps, &pair->windows[mode].steps,
			      &window->steps);
		window->busy_ns -= pair->windows[mode].busy_ns;
		window->watched_ns -= pair->windows[mode].watched_ns;
	}
	return rest;
}

/* Student's t for the 95 % interval (usual) and for the 99 % interval (sure). */
struct student {
	double usual;
	double sure;
};

static struct student student_t(u32 freedom)
{
	static const struct student table[] = {
		{ 12.706, 63.657 }, { 4.303, 9.925 }, { 3.182, 5.841 }, { 2.776, 4.604 },
		{ 2.571, 4.032 },   { 2.447, 3.707 }, { 2.365, 3.499 }, { 2.306, 3.355 },
		{ 2.262, 3.250 },   { 2.228, 3.169 }, { 2.201, 3.106 }, { 2.179, 3.055 },
		{ 2.160, 3.012 },   { 2.145, 2.977 }, { 2.131, 2.947 }, { 2.120, 2.921 },
		{ 2.110, 2.898 },   { 2.101, 2.878 }, { 2.093, 2.861 }, { 2.086, 2.845 },
		{ 2.080, 2.831 },   { 2.074, 2.819 }, { 2.069, 2.807 }, { 2.064, 2.797 },
		{ 2.060, 2.787 },   { 2.056, 2.779 }, { 2.052, 2.771 }, { 2.048, 2.763 },
		{ 2.045, 2.756 },   { 2.042, 2.750 },
	};

	if (freedom <= ARRAY_SIZE(table))
		return table[freedom - 1];
	return (struct student){ 1.96 + 2.4 / freedom, 2.576 + 5.1 / freedom };
}

static struct ab_interval jackknife(const struct figure *figure, const struct ab_pair *pairs,
				    u32 nr, const struct ab_pair *all)
{
	double changes[AB_PAIRS_MAX], value = change(figure, all), mean = 0, squares = 0, error;
	struct student t = student_t(nr - 1);
	struct ab_interval ret;

	for (u32 i = 0; i < nr; i++) {
		struct ab_pair rest = leave_out(all, &pairs[i]);

		changes[i] = change(figure, &rest);
		mean += changes[i] / nr;
	}
	for (u32 i = 0; i < nr; i++)
		squares += (changes[i] - mean) * (changes[i] - mean);
	error = sqrt(squares * (nr - 1) / nr);
	ret = (struct ab_interval){
		.value = value,
		.low = value - t.usual * error - figure->error,
		.high = value + t.usual * error + figure->error,
		.is_sure = fabs(value) > t.sure * error + figure->error,
	};
	if (figure->ratio) {
		ret.value = expm1(ret.value);
		ret.low = expm1(ret.low);
		ret.high = expm1(ret.high);
	}
	return ret;
}

/* The jackknife needs every figure to stay defined after any one pair is left out. */
static bool is_enough(const struct ab_pair *pairs, u32 nr, const struct ab_pair *all)
{
	if (nr < AB_PAIRS_MIN || nr > AB_PAIRS_MAX)
		return false;
	for (u32 i = 0; i < nr; i++)
		for (u32 mode = 0; mode < AB_MODE_NR; mode++)
			if (all->windows[mode].steps.count <= pairs[i].windows[mode].steps.count ||
			    all->windows[mode].steps.sum <= pairs[i].windows[mode].steps.sum ||
			    all->windows[mode].watched_ns <= pairs[i].windows[mode].watched_ns)
				return false;
	return true;
}

int ab_evaluate(const struct ab_pair *pairs, u32 nr, struct ab_effect *ret)
{
	static const struct figure step = { mean_of, true, 0 };
	static const struct figure p99 = { p99_of, true, 0.25 * 0.693147180559945 };
	static const struct figure busy = { busy_of, false, 0 };
	struct ab_effect effect = { .has_p99 = true };
	struct ab_pair all = {};

	for (u32 i = 0; i < nr; i++)
		for (u32 mode = 0; mode < AB_MODE_NR; mode++)
			ab_add(&all.windows[mode], &pairs[i].windows[mode]);
	if (!is_enough(pairs, nr, &all))
		return -ENODATA;
	for (u32 mode = 0; mode < AB_MODE_NR; mode++) {
		const struct ab_window *window = &all.windows[mode];

		effect.nr_steps[mode] = window->steps.count;
		effect.step_ns[mode] = mean_of(window);
		effect.p99_ns[mode] = p99_of(window);
		effect.busy[mode] = busy_of(window);
		effect.has_p99 &= window->steps.count >= P99_STEPS_MIN;
	}
	effect.step_change = jackknife(&step, pairs, nr, &all);
	effect.p99_change = jackknife(&p99, pairs, nr, &all);
	effect.busy_change = jackknife(&busy, pairs, nr, &all);
	*ret = effect;
	return 0;
}

enum ab_verdict ab_judge(const struct ab_effect *effect)
{
	const struct ab_interval *step = &effect->step_change;

	if (!step->is_sure || fabs(step->value) < CHANGE_MIN)
		return AB_NO_DIFFERENCE;
	return step->value < 0 ? AB_BETTER : AB_WORSE;
}
