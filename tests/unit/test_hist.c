/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "core/hist.h"

/* The documented error bound of quantiles. */
static void assert_close(u64 value, u64 exact)
{
	assert_true(fabs((double)value / (double)exact - 1) < 0.091);
}

static void the_reference_vector(void **state)
{
	struct hist h = {};

	for (u64 x = 1000; x <= 100000; x += 1000)
		hist_record(&h, x);
	assert_int_equal(h.count, 100);
	assert_int_equal(h.sum, 5050000);
	assert_int_equal(h.min, 1000);
	assert_int_equal(h.max, 100000);
	assert_int_equal(hist_mean(&h), 50500);
	/* exact: sorted[50] is 51000, sorted[99] is 100000 */
	assert_close(hist_quantile(&h, 500), 51000);
	assert_close(hist_quantile(&h, 990), 100000);
	assert_true(hist_quantile(&h, 990) >= hist_quantile(&h, 500));
}

static void a_weighted_value_counts_as_many(void **state)
{
	struct hist one = {}, many = {};

	hist_record_times(&one, 1234, 32);
	for (int i = 0; i < 32; i++)
		hist_record(&many, 1234);
	assert_memory_equal(&one, &many, sizeof(one));
}

static void an_empty_distribution_gives_0(void **state)
{
	const struct hist h = {};

	assert_int_equal(h.count, 0);
	assert_int_equal(h.max, 0);
	assert_int_equal(hist_mean(&h), 0);
	assert_int_equal(hist_quantile(&h, 500), 0);
}

/* The bounds must equal those of Prometheus, so the test computes them from the definition. */
static void bounds_are_those_of_schema_2(void **state)
{
	assert_int_equal(hist_bounds_ns[0], 0);
	for (u32 slot = 1; slot < HIST_OVERFLOW; slot++) {
		int i = (int)slot - HIST_SCHEMA_OFFSET;

		assert_int_equal(hist_bounds_ns[slot], (u64)floorl(1e9L * exp2l(i / 4.0L)));
	}
	assert_int_equal(hist_bounds_ns[HIST_OVERFLOW], UINT64_MAX);
}

static void values_are_in_the_expected_buckets(void **state)
{
	static const struct {
		u64 ns;
		s32 schema_index;
	} rows[] = {
		{ 1, -119 },   /* 2^-29.75 s is 1.1 ns */
		{ 1000, -79 }, /* 2^-19.75 s is 1.13 us */
		{ 1000000, -39 },
		{ NSEC_PER_SEC, 0 }, /* the upper bound belongs to the bucket */
		{ NSEC_PER_SEC + 1, 1 },
		{ 2 * NSEC_PER_SEC, 4 },
		{ 2 * NSEC_PER_SEC + 1, 5 },
		{ 16384 * NSEC_PER_SEC, 56 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal((s32)hist_index(rows[i].ns) - HIST_SCHEMA_OFFSET,
				 rows[i].schema_index);
}

static void zero_and_overflow_have_their_own_slots(void **state)
{
	assert_int_equal(hist_index(0), 0);
	assert_int_equal(hist_index(16384 * NSEC_PER_SEC + 1), HIST_OVERFLOW);
	assert_int_equal(hist_index(1ULL << 44), HIST_OVERFLOW);
	assert_int_equal(hist_index(UINT64_MAX), HIST_OVERFLOW);
}

static void every_bound_is_the_last_value_of_its_bucket(void **state)
{
	for (u32 slot = 1; slot < HIST_OVERFLOW; slot++) {
		/* Below a few ns, some buckets contain no integer. */
		if (hist_bounds_ns[slot] == hist_bounds_ns[slot - 1])
			continue;
		assert_int_equal(hist_index(hist_bounds_ns[slot]), slot);
		assert_true(hist_index(hist_bounds_ns[slot] + 1) > slot);
	}
}

static void log2_is_exact_at_every_power(void **state)
{
	for (u32 n = 0; n < 64; n++) {
		assert_int_equal(hist_log2(1ULL << n), n);
		assert_int_equal(hist_log2(UINT64_MAX >> (63 - n)), n);
	}
}

static void quantiles_use_the_documented_ranks(void **state)
{
	struct hist h = {};

	/* The values are far apart, so the result identifies the rank: sorted 0, 1 s, 1000 s. */
	hist_record(&h, 1000 * NSEC_PER_SEC);
	hist_record(&h, 0);
	assert_close(hist_quantile(&h, 500), 1000 * NSEC_PER_SEC);
	hist_record(&h, NSEC_PER_SEC);
	assert_int_equal(hist_quantile(&h, 0), 0);
	assert_close(hist_quantile(&h, 500), NSEC_PER_SEC);
	assert_close(hist_quantile(&h, 990), 1000 * NSEC_PER_SEC);
	assert_close(hist_quantile(&h, 1000), 1000 * NSEC_PER_SEC);
	assert_close(hist_quantile(&h, 9999), 1000 * NSEC_PER_SEC);
}

/* 99 small values and 1 large value: sorted[min(floor(99), 99)] is the large value. */
static void p99_of_100_values_is_the_largest(void **state)
{
	struct hist h = {};

	for (int i = 0; i < 99; i++)
		hist_record(&h, 1000);
	hist_record(&h, NSEC_PER_SEC);
	assert_close(hist_quantile(&h, 990), NSEC_PER_SEC);
	assert_close(hist_quantile(&h, 989), 1000);
}

static void quantiles_stay_between_min_and_max(void **state)
{
	struct hist h = {};

	hist_record(&h, 123456789);
	assert_int_equal(hist_quantile(&h, 500), 123456789);
	assert_int_equal(hist_quantile(&h, 990), 123456789);
}

static void the_overflow_slot_gives_the_maximum(void **state)
{
	struct hist h = {};

	hist_record(&h, 20000 * NSEC_PER_SEC);
	hist_record(&h, 30000 * NSEC_PER_SEC);
	assert_int_equal(hist_quantile(&h, 0), 30000 * NSEC_PER_SEC);
}

/* A reader may see a count that is ahead of the buckets while another CPU records a value. */
static void a_count_ahead_of_the_buckets_is_harmless(void **state)
{
	struct hist h = {};

	hist_record(&h, 1000);
	h.count++;
	assert_int_equal(hist_quantile(&h, 990), 1000);
}

static void adding_equals_recording_all_values(void **state)
{
	struct hist a = {}, b = {}, both = {}, empty = {};

	for (u64 x = 1; x < 1000000; x *= 3) {
		hist_record(&a, x);
		hist_record(&b, x * 7);
		hist_record(&both, x);
		hist_record(&both, x * 7);
	}
	hist_add(&a, &b);
	assert_memory_equal(&a, &both, sizeof(a));
	hist_add(&a, &empty);
	assert_memory_equal(&a, &both, sizeof(a));
	hist_add(&empty, &both);
	assert_memory_equal(&empty, &both, sizeof(a));
}

static void subtracting_gives_the_values_in_between(void **state)
{
	struct hist before = {}, now, between = {}, got;

	for (u64 x = 10; x < 1000000; x *= 3)
		hist_record(&before, x);
	now = before;
	for (u64 x = 1000; x < 100000; x += 777) {
		hist_record(&now, x);
		hist_record(&between, x);
	}
	assert_int_equal(hist_subtract(&now, &before, &got), 0);
	assert_int_equal(got.count, between.count);
	assert_int_equal(got.sum, between.sum);
	assert_memory_equal(got.buckets, between.buckets, sizeof(got.buckets));
	/* Min and max are in the same buckets as the true values. */
	assert_true(got.min <= between.min && hist_index(got.min) == hist_index(between.min));
	assert_true(got.max >= between.max && hist_index(got.max) == hist_index(between.max));
	for (u32 permille = 0; permille <= 1000; permille += 10)
		assert_close(hist_quantile(&got, permille), hist_quantile(&between, permille));
}

static void subtracting_an_empty_distribution_is_exact(void **state)
{
	struct hist now = {}, got, empty = {};

	assert_int_equal(hist_subtract(&empty, &empty, &got), 0);
	assert_memory_equal(&got, &empty, sizeof(got));
	hist_record(&now, 0);
	hist_record(&now, 123456);
	hist_record(&now, 20000 * NSEC_PER_SEC);
	assert_int_equal(hist_subtract(&now, &empty, &got), 0);
	assert_memory_equal(&got, &now, sizeof(got));
	assert_int_equal(hist_subtract(&now, &now, &got), 0);
	assert_memory_equal(&got, &empty, sizeof(got));
}

static void a_count_that_decreased_is_an_error(void **state)
{
	struct hist before = {}, now = {}, got = { .count = 42 };

	hist_record(&before, 1000);
	assert_int_equal(hist_subtract(&now, &before, &got), -1);
	hist_record(&now, 5);
	assert_int_equal(hist_subtract(&now, &before, &got), -1);
	/* Count and sum increased, but one bucket decreased. */
	hist_record(&now, 5000);
	assert_int_equal(hist_subtract(&now, &before, &got), -1);
	assert_int_equal(got.count, 42);
}

static void a_shared_distribution_equals_one_of_a_single_writer(void **state)
{
	struct shared_hist shared = {};
	struct hist plain = {}, got = hist_of_shared(&shared);

	assert_memory_equal(&got, &plain, sizeof(got));
	for (u64 x = 3; x < 1ULL << 60; x *= 5) {
		hist_record_times(&plain, x, x % 7 + 1);
		assert_true(shared_hist_record_times(&shared, x, x % 7 + 1));
	}
	for (u32 i = 0; i < 2; i++) {
		hist_record(&plain, i ? ~0ULL : 0);
		assert_true(shared_hist_record_times(&shared, i ? ~0ULL : 0, 1));
	}
	got = hist_of_shared(&shared);
	assert_memory_equal(&got, &plain, sizeof(got));
}

static u64 lowest(u32 slot)
{
	return slot ? hist_bounds_ns[slot - 1] + 1 : 0;
}

/* Whether its minimum and its maximum are in its first and its last bucket. */
static bool is_possible(const struct hist *h)
{
	u32 first = 0, last = HIST_OVERFLOW;

	if (!h->count)
		return true;
	while (!h->buckets[first])
		first++;
	while (!h->buckets[last])
		last--;
	return h->min <= h->max && h->min >= lowest(first) && h->min <= hist_bounds_ns[first] &&
	       h->max >= lowest(last) && h->max <= hist_bounds_ns[last];
}

/* Other CPUs can see the writes of a value in any order. */
static void a_value_that_is_half_visible_is_no_absurd_one(void **state)
{
	static const u64 values[] = { 0, 1, 1000, NSEC_PER_SEC, ~0ULL };

	for (u32 i = 0; i < 8 * ARRAY_SIZE(values); i++) {
		u64 x = values[i / 8];
		struct shared_hist shared = { .sum = i & 1 ? x : 0,
					      .max = i & 2 ? x : 0,
					      .inverted_min = i & 4 ? ~x : 0 };
		struct hist got = hist_of_shared(&shared);

		assert_int_equal(got.count, 0);
		shared.buckets[hist_index(x)] = 1;
		got = hist_of_shared(&shared);
		assert_true(is_possible(&got));
		assert_int_equal(got.count, shared.max || shared.inverted_min);
	}
}

#define NR_WRITERS 4
#define NR_VALUES  2000000

struct writer {
	pthread_t thread;
	pthread_barrier_t *start;
	struct shared_hist *shared;
	struct hist kept;
	u64 first;
	u64 nr_inexact;
};

/*
 * Values that raise the maximum or lower the minimum again and again, as no workload does, through
 * many buckets.
 */
static void *write_values(void *arg)
{
	struct writer *writer = arg;

	pthread_barrier_wait(writer->start);
	for (u64 i = 0; i < NR_VALUES; i++) {
		u64 step = i * NR_WRITERS + writer->first;
		u64 x = i % 2 ? (1ULL << 35) + (step << 15) : (1ULL << 35) - (step << 12);

		writer->nr_inexact += !shared_hist_record_times(writer->shared, x, 2);
		hist_record_times(&writer->kept, x, 2);
	}
	return NULL;
}

struct reader {
	pthread_t thread;
	const struct shared_hist *shared;
	atomic_bool ends;
	u64 nr_copies;
	u64 nr_absurd;
};

/* The bounds first, so that their values are older than the buckets, as on other machines. */
static void *read_copies(void *arg)
{
	struct reader *reader = arg;

	while (!reader->ends) {
		struct shared_hist copy;
		struct hist got;

		for (u32 i = sizeof(copy) / sizeof(u64); i-- > 0;)
			((u64 *)&copy)[i] = ((volatile const u64 *)reader->shared)[i];
		got = hist_of_shared(&copy);
		reader->nr_absurd += !is_possible(&got);
		reader->nr_copies++;
	}
	return NULL;
}

static void writers_on_several_cpus_lose_nothing(void **state)
{
	static struct writer writers[NR_WRITERS];
	static struct shared_hist shared;
	struct reader reader = { .shared = &shared };
	struct hist kept = {}, got;
	pthread_barrier_t start;
	u64 nr_inexact = 0;

	assert_int_equal(pthread_barrier_init(&start, NULL, NR_WRITERS), 0);
	for (u32 i = 0; i < NR_WRITERS; i++) {
		writers[i].start = &start;
		writers[i].shared = &shared;
		writers[i].first = i;
		assert_int_equal(
			pthread_create(&writers[i].thread, NULL, write_values, &writers[i]), 0);
	}
	assert_int_equal(pthread_create(&reader.thread, NULL, read_copies, &reader), 0);
	for (u32 i = 0; i < NR_WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		hist_add(&kept, &writers[i].kept);
		nr_inexact += writers[i].nr_inexact;
	}
	reader.ends = true;
	assert_int_equal(pthread_join(reader.thread, NULL), 0);
	pthread_barrier_destroy(&start);
	got = hist_of_shared(&shared);
	print_message("# %llu of %u values did not raise a bound; %llu copies\n", nr_inexact,
		      NR_WRITERS * NR_VALUES, reader.nr_copies);
	if (nr_inexact) {
		kept.min = got.min;
		kept.max = got.max;
	}
	assert_memory_equal(&got, &kept, sizeof(got));
	assert_int_equal(got.count, 2 * NR_WRITERS * NR_VALUES);
	assert_in_range(nr_inexact, 0, NR_VALUES / 1000);
	assert_true(reader.nr_copies > 0);
	assert_int_equal(reader.nr_absurd, 0);
}

int main(void)
{
	const struct CMUnitTest hist[] = {
		cmocka_unit_test(the_reference_vector),
		cmocka_unit_test(a_weighted_value_counts_as_many),
		cmocka_unit_test(an_empty_distribution_gives_0),
		cmocka_unit_test(bounds_are_those_of_schema_2),
		cmocka_unit_test(values_are_in_the_expected_buckets),
		cmocka_unit_test(zero_and_overflow_have_their_own_slots),
		cmocka_unit_test(every_bound_is_the_last_value_of_its_bucket),
		cmocka_unit_test(log2_is_exact_at_every_power),
		cmocka_unit_test(quantiles_use_the_documented_ranks),
		cmocka_unit_test(p99_of_100_values_is_the_largest),
		cmocka_unit_test(quantiles_stay_between_min_and_max),
		cmocka_unit_test(the_overflow_slot_gives_the_maximum),
		cmocka_unit_test(a_count_ahead_of_the_buckets_is_harmless),
		cmocka_unit_test(adding_equals_recording_all_values),
		cmocka_unit_test(subtracting_gives_the_values_in_between),
		cmocka_unit_test(subtracting_an_empty_distribution_is_exact),
		cmocka_unit_test(a_count_that_decreased_is_an_error),
		cmocka_unit_test(a_shared_distribution_equals_one_of_a_single_writer),
		cmocka_unit_test(a_value_that_is_half_visible_is_no_absurd_one),
		cmocka_unit_test(writers_on_several_cpus_lose_nothing),
	};

	return cmocka_run_group_tests(hist, NULL, NULL);
}
