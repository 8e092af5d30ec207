/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/macros.h"
#include "property/property.h"

#include <math.h>
#include <string.h>

#include "core/hist.h"

#define LARGEST_BOUND (16384 * NSEC_PER_SEC)
#define VALUES	      100
#define NR_SAMPLES    1000000
#define ERROR_BOUND   0.091

static bool every_value_lies_in_its_bucket_holds(struct random *r)
{
	u64 x = random_any(r);
	u32 slot = hist_index(x);

	/* Errors are most likely at a bound and next to it. */
	if (slot < HIST_OVERFLOW && random_below(r, 2)) {
		x = hist_bounds_ns[slot] + random_below(r, 3) - (slot > 0);
		slot = hist_index(x);
	}
	if (slot >= HIST_SLOTS)
		return false;
	if (slot == HIST_OVERFLOW)
		return x > LARGEST_BOUND;
	return x <= hist_bounds_ns[slot] && (slot == 0 || x > hist_bounds_ns[slot - 1]);
}
PROPERTY(every_value_lies_in_its_bucket, 1)

static bool a_larger_value_has_no_lower_bucket_holds(struct random *r)
{
	u64 a = random_any(r);
	u64 b = random_near(r, a);

	return a <= b ? hist_index(a) <= hist_index(b) : hist_index(a) >= hist_index(b);
}
PROPERTY(a_larger_value_has_no_lower_bucket, 1)

/* The error bound holds except for rounding to whole nanoseconds. */
static bool the_bucket_middle_is_within_the_error_bound_holds(struct random *r)
{
	u64 x = random_any(r) % LARGEST_BOUND + 1;
	double off = fabs((double)hist_middle(hist_index(x)) - (double)x);

	return off <= (exp2(1 / 8.0) - 1) * (double)x + 0.5;
}
PROPERTY(the_bucket_middle_is_within_the_error_bound, 1)

static bool a_sum_equals_one_histogram_of_all_values_holds(struct random *r)
{
	struct hist a = {}, b = {}, both = {}, ab, ba;

	for (u32 i = 0; i < VALUES; i++) {
		u64 x = random_any(r) >> 8;

		hist_record(random_below(r, 2) ? &a : &b, x);
		hist_record(&both, x);
	}
	ab = a;
	hist_add(&ab, &b);
	ba = b;
	hist_add(&ba, &a);
	return !memcmp(&ab, &both, sizeof(both)) && !memcmp(&ba, &both, sizeof(both));
}
PROPERTY(a_sum_equals_one_histogram_of_all_values, VALUES)

static bool count_sum_min_and_max_are_exact_holds(struct random *r)
{
	struct hist h = {};
	u64 sum = 0, min = ~0ULL, max = 0, in_buckets = 0;

	for (u32 i = 0; i < VALUES; i++) {
		u64 x = random_any(r) >> 8;

		hist_record(&h, x);
		sum += x;
		min = x < min ? x : min;
		max = x > max ? x : max;
	}
	for (u32 i = 0; i < HIST_SLOTS; i++)
		in_buckets += h.buckets[i];
	return h.count == VALUES && in_buckets == VALUES && h.sum == sum && h.min == min &&
	       h.max == max && hist_mean(&h) == sum / VALUES;
}
PROPERTY(count_sum_min_and_max_are_exact, VALUES)

/* The distributions, in nanoseconds, from microseconds to a second. */
static double uniform(struct random *r)
{
	return 1e3 + random_unit(r) * 1e9;
}

static double normal(struct random *r)
{
	double x = sqrt(-2 * log(random_unit(r))) * cos(2 * M_PI * random_unit(r));

	return fmax(1e3, 5e6 + 1e6 * x);
}

static double exponential(struct random *r)
{
	return 1e3 - 2e6 * log(random_unit(r));
}

static double bimodal(struct random *r)
{
	return normal(r) * (random_below(r, 3) ? 1 : 200);
}

static double constant(struct random *r)
{
	return 1234567;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void quantiles_are_within_the_bound(void **state)
{
	static const u32 permille[] = { 0, 1, 10, 100, 250, 500, 750, 900, 990, 999, 1000 };
	double (*const *draw)(struct random *r) = *state;
	struct random r = random_start();
	u64 *sorted = malloc(NR_SAMPLES * sizeof(*sorted));
	struct hist h = {};
	double worst = 0, start = property_seconds();

	assert_non_null(sorted);
	for (u32 i = 0; i < NR_SAMPLES; i++) {
		sorted[i] = (u64)(*draw)(&r);
		hist_record(&h, sorted[i]);
	}
	qsort(sorted, NR_SAMPLES, sizeof(*sorted), compare);
	for (size_t i = 0; i < ARRAY_SIZE(permille); i++) {
		u64 rank = (u64)floor(permille[i] / 1000.0 * NR_SAMPLES);
		double exact = (double)sorted[rank < NR_SAMPLES ? rank : NR_SAMPLES - 1];

		worst = fmax(worst, fabs((double)hist_quantile(&h, permille[i]) / exact - 1));
	}
	free(sorted);
	print_message("# %d samples: worst error %.2f %% in %.1f s\n", NR_SAMPLES, 100 * worst,
		      property_seconds() - start);
	assert_true(worst <= ERROR_BOUND);
}

/* A function pointer does not fit into a void pointer, so the state points to one. */
#define QUANTILES(shape)                                                                           \
	{                                                                                          \
		.name = "quantiles_are_within_the_bound_" #shape,                                  \
		.test_func = quantiles_are_within_the_bound,                                       \
		.initial_state = &(double (*)(struct random *)){ shape },                          \
	}

int main(void)
{
	struct CMUnitTest hist_properties[] = {
		cmocka_unit_test(every_value_lies_in_its_bucket),
		cmocka_unit_test(a_larger_value_has_no_lower_bucket),
		cmocka_unit_test(the_bucket_middle_is_within_the_error_bound),
		cmocka_unit_test(a_sum_equals_one_histogram_of_all_values),
		cmocka_unit_test(count_sum_min_and_max_are_exact),
		QUANTILES(uniform),
		QUANTILES(normal),
		QUANTILES(exponential),
		QUANTILES(bimodal),
		QUANTILES(constant),
	};

	return cmocka_run_group_tests(hist_properties, NULL, NULL);
}
