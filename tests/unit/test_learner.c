/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the learner of one thread: when its averages mature, its tier, and its observations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/learner.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC

/* A simulated thread with its own clock. */
struct thread {
	struct learner l;
	u64 now;
	u32 nr_told;
	struct procdb_record told;
};

static struct thread thread_like(const struct procdb_record *prediction)
{
	struct thread t = { .now = NSEC_PER_SEC };

	learn_begin(&t.l, 1, 0, 0, prediction);
	return t;
}

static void note(struct thread *t, bool news)
{
	if (!news)
		return;
	t->told = learn_tell(&t->l, t->now);
	t->nr_told++;
}

static void runs(struct thread *t, u64 ns, bool sleeps)
{
	t->now += ns;
	note(t, learn_ran(&t->l, ns, sleeps, t->now));
}

static void sleeps(struct thread *t, u64 ns)
{
	t->now += ns;
	learn_woken(&t->l, t->now);
}

/* Runs until `nr_told` observations are reported or the limit is reached. Returns the CPU time. */
static u64 burn_until_told(struct thread *t, u32 nr_told, u64 limit_ns)
{
	u64 burnt = 0;

	while (t->nr_told < nr_told && burnt < limit_ns) {
		runs(t, MS / 2, false);
		burnt += MS / 2;
	}
	return burnt;
}

static void naps(struct thread *t, u32 nr, u64 run_ns, u64 sleep_ns)
{
	for (u32 i = 0; i < nr; i++) {
		runs(t, run_ns, true);
		sleeps(t, sleep_ns);
	}
}

static void a_thread_that_never_sleeps_is_batch_after_8_ms(void **state)
{
	struct thread t = thread_like(NULL);

	assert_int_equal(t.l.tier, TIER_DEFAULT);
	assert_int_equal(burn_until_told(&t, 1, NSEC_PER_SEC), LEARN_AGE * MS);
	assert_int_equal(t.told.tier, TIER_BATCH);
	assert_int_equal(t.told.corrects, 0);
	assert_int_equal(t.told.behaviour.runtime_avg_ns, LEARN_AGE * MS);
	/* There are no further observations. */
	burn_until_told(&t, 2, 60 * NSEC_PER_SEC);
	assert_int_equal(t.nr_told, 1);
	assert_int_equal(t.l.runtime_avg_ns / MS, LEARN_BURST_NS / MS - 1);
}

static void a_sleeping_thread_is_reported_after_8_sleeps(void **state)
{
	struct thread t = thread_like(NULL);

	naps(&t, LEARN_AGE - 1, 100 * US, 10 * MS);
	assert_int_equal(t.nr_told, 0);
	naps(&t, 1, 100 * US, 10 * MS);
	assert_int_equal(t.nr_told, 1);
	assert_int_equal(t.told.tier, TIER_INTERACTIVE);
	assert_int_equal(t.told.behaviour.runtime_avg_ns, 100 * US);
	assert_int_equal(t.told.behaviour.runtime_dev_ns, 0);
	assert_in_range(t.told.behaviour.wakeup_freq, 98, 100);
}

/* Two threads that wake each other a few hundred times per second. */
static void threads_that_wake_each_other_are_latency_critical(void **state)
{
	struct thread a = thread_like(NULL), b = thread_like(NULL);

	for (u32 i = 0; i < 20; i++) {
		runs(&a, 50 * US, true);
		b.now = a.now += 2 * MS;
		learn_woken(&b.l, b.now);
		learn_wakes(&a.l, &b.l, b.now);
		runs(&b, 50 * US, true);
		a.now = b.now += 2 * MS;
		learn_woken(&a.l, a.now);
		learn_wakes(&b.l, &a.l, a.now);
	}
	assert_int_equal(a.l.tier, TIER_LAT_CRITICAL);
	assert_int_equal(b.l.tier, TIER_LAT_CRITICAL);
}

/* As often as in the test above, but no thread waits for it. */
static void a_timer_alone_is_not_latency_critical(void **state)
{
	struct thread t = thread_like(NULL);

	naps(&t, 100, 50 * US, 4 * MS);
	assert_int_equal(t.l.tier, TIER_INTERACTIVE);
}

static void a_short_lived_thread_is_reported_at_its_end(void **state)
{
	struct thread t = thread_like(NULL);

	runs(&t, 3 * MS, false);
	assert_false(learn_ended(&t.l, t.now)); /* no burst is in the averages yet */
	runs(&t, MS, true);
	assert_int_equal(t.nr_told, 0);
	note(&t, learn_ended(&t.l, t.now));
	assert_int_equal(t.nr_told, 1);
	assert_int_equal(t.told.tier, TIER_BATCH);
	assert_false(learn_ended(&t.l, t.now));

	t = thread_like(NULL);
	runs(&t, LEARN_LIFE_NS / 2, true);
	assert_false(learn_ended(&t.l, t.now));
}

/* A thread starts, sleeps often, and ends within a second. Its final tier is reported. */
static void a_correction_is_reported_at_the_end(void **state)
{
	struct thread t = thread_like(NULL);

	runs(&t, 10 * MS, false);
	assert_int_equal(t.told.tier, TIER_BATCH);
	naps(&t, 50, 100 * US, 5 * MS);
	assert_int_equal(t.nr_told, 1);
	note(&t, learn_ended(&t.l, t.now));
	assert_int_equal(t.nr_told, 2);
	assert_int_equal(t.told.tier, TIER_INTERACTIVE);
	assert_int_equal(t.told.corrects, TIER_BATCH + 1);
	assert_false(learn_ended(&t.l, t.now));
}

static struct procdb_record prediction_of(u8 tier, u64 average, u64 deviation)
{
	return (struct procdb_record){ .tier = tier,
				       .behaviour = { .runtime_avg_ns = average,
						      .runtime_dev_ns = deviation } };
}

/* The times in docs/concepts/learning.md hold for any predicted averages. */
static const u64 any_average[] = { 0, 1, 100 * US, MS, 10 * MS, ~0ULL };

static void a_wrong_prediction_is_corrected_in_time(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(any_average); i++)
		for (u8 tier = TIER_INTERACTIVE; tier <= TIER_LAT_CRITICAL; tier++) {
			struct procdb_record wrong =
				prediction_of(tier, any_average[i], any_average[i]);
			struct thread t = thread_like(&wrong);

			assert_int_equal(t.l.tier, tier);
			assert_true(burn_until_told(&t, 1, NSEC_PER_SEC) <=
				    (LEARN_AGE + LEARN_PATIENCE) * MS);
			assert_int_equal(t.told.tier, TIER_BATCH);
			assert_int_equal(t.l.tier, TIER_BATCH);
		}
}

/* Its sleeps are short, so only the short bursts show that it is not batch. */
static void a_wrong_batch_prediction_is_corrected_in_time(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(any_average); i++) {
		struct procdb_record wrong = prediction_of(TIER_BATCH, any_average[i], 0);
		struct thread t = thread_like(&wrong);

		naps(&t, LEARN_AGE + LEARN_PATIENCE, 100 * US, MS);
		assert_int_equal(t.l.tier, TIER_INTERACTIVE);
		assert_int_equal(t.told.tier, TIER_INTERACTIVE);
	}
}

static void a_predicted_thread_starts_with_the_predicted_averages(void **state)
{
	struct procdb_record known = prediction_of(TIER_BATCH, 3 * MS, 200 * US);
	struct thread t = thread_like(&known);

	assert_int_equal(t.l.runtime_avg_ns, 3 * MS);
	assert_int_equal(t.l.runtime_dev_ns, 200 * US);
	runs(&t, MS, true);
	assert_int_equal(t.l.runtime_avg_ns, 2 * MS);
	assert_int_equal(t.l.runtime_dev_ns, (200 * US + 2 * MS) / 2);

	/* Without a prediction, or without predicted averages, the first burst is the average. */
	t = thread_like(NULL);
	assert_int_equal(t.l.runtime_avg_ns, 0);
	known = prediction_of(TIER_BATCH, 0, 0);
	t = thread_like(&known);
	runs(&t, MS, true);
	assert_int_equal(t.l.runtime_avg_ns, MS);
}

/* Only a small part of the prediction is left when the averages are mature. */
static void predicted_averages_fade_before_maturity(void **state)
{
	struct procdb_record wrong = prediction_of(TIER_INTERACTIVE, ~0ULL, ~0ULL);
	struct thread t = thread_like(&wrong);

	assert_int_equal(t.l.runtime_avg_ns, LEARN_BURST_NS);
	naps(&t, LEARN_AGE, 100 * US, 10 * MS);
	assert_int_equal(t.nr_told, 1);
	assert_in_range(t.told.behaviour.runtime_avg_ns, 100 * US,
			100 * US + (LEARN_BURST_NS >> LEARN_AGE));
}

/* A profile must learn from the behavior of threads, not from its own predictions. */
static void a_short_lived_thread_does_not_confirm_its_prediction(void **state)
{
	struct procdb_record wrong = prediction_of(TIER_BATCH, 8 * MS, 0);
	struct thread t = thread_like(&wrong);

	runs(&t, 500 * US, true);
	sleeps(&t, 10 * US);
	runs(&t, 700 * US, true);
	note(&t, learn_ended(&t.l, t.now));
	assert_int_equal(t.nr_told, 1);
	assert_int_equal(t.told.tier, TIER_INTERACTIVE);
	assert_int_equal(t.told.behaviour.runtime_avg_ns, 600 * US);

	t = thread_like(&wrong);
	runs(&t, 3 * MS, false);
	assert_false(learn_ended(&t.l, t.now)); /* no own burst is in the averages */
}

/* A program uses much CPU time during dynamic linking. This must not change its prediction. */
static void a_right_prediction_survives_the_program_start(void **state)
{
	struct procdb_record right = { .tier = TIER_INTERACTIVE };
	struct thread t = thread_like(&right);

	runs(&t, 20 * MS, false);
	assert_int_equal(t.l.tier, TIER_INTERACTIVE);
	naps(&t, 100, 100 * US, 20 * MS);
	assert_int_equal(t.l.tier, TIER_INTERACTIVE);
	assert_int_equal(t.nr_told, 1);
	assert_int_equal(t.told.tier, TIER_INTERACTIVE);
}

/* A thread that was interactive and then never sleeps becomes batch within a time bound. */
static void a_change_is_reported_and_replaces_the_vote(void **state)
{
	static const struct {
		u64 sleep_ns, burns_ns;
	} rows[] = {
		{ 2 * MS, 48 * MS },
		{ 10 * MS, 88 * MS },
		{ 3600 * NSEC_PER_SEC, 208 * MS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct thread t = thread_like(NULL);

		naps(&t, 100, 100 * US, rows[i].sleep_ns);
		assert_int_equal(t.told.tier, TIER_INTERACTIVE);
		for (u64 burnt = 0; t.l.tier != TIER_BATCH; burnt += MS) {
			assert_true(burnt <= rows[i].burns_ns);
			runs(&t, MS, false);
		}
		burn_until_told(&t, t.nr_told + 1, 2 * NSEC_PER_SEC);
		assert_int_equal(t.told.tier, TIER_BATCH);
		assert_int_equal(t.told.corrects, TIER_INTERACTIVE + 1);
	}
}

/* A thread that ends wakes its parent and the reader of its output. Any of these can be judged. */
static void a_short_burst_of_wakeups_changes_no_tier(void **state)
{
	for (u32 nr = 250; nr < 250 + 2 * LEARN_AGE; nr++) {
		struct thread t = thread_like(NULL), other = thread_like(NULL);

		naps(&t, nr, 100 * US, 5 * MS);
		for (u32 i = 0; i < 4; i++) {
			learn_wakes(&t.l, &other.l, t.now);
			runs(&t, 20 * US, true);
			sleeps(&t, 20 * US);
		}
		assert_int_equal(t.l.tier, TIER_INTERACTIVE);
		assert_false(learn_ended(&t.l, t.now));
	}
}

/* A thread with changing tiers has one vote, and can change it only once per second. */
static void votes_change_at_most_once_per_second(void **state)
{
	struct thread t = thread_like(NULL);
	u64 begun = t.now;

	for (u32 i = 0; i < 100; i++) {
		burn_until_told(&t, ~0U, 100 * MS);
		naps(&t, 50, 100 * US, MS);
	}
	assert_true(t.nr_told <= (t.now - begun) / NSEC_PER_SEC + 1);
	assert_true(t.told.corrects > 0);
}

static void a_long_lived_thread_is_reported_again(void **state)
{
	struct thread t = thread_like(NULL);

	naps(&t, 2 * 3600, 100 * US, NSEC_PER_SEC);
	assert_int_equal(t.nr_told, 2);
	assert_int_equal(t.told.corrects, t.told.tier + 1);
}

static void the_rate_of_a_stopped_event_falls(void **state)
{
	struct rate rate = {};

	assert_int_equal(rate_hz(&rate, 5), 0);
	for (u64 now = MS; now <= 100 * MS; now += MS)
		rate_event(&rate, now);
	assert_int_equal(rate_hz(&rate, 100 * MS), 1000);
	assert_int_equal(rate_hz(&rate, 600 * MS), 2);
	/* A clock that is slightly behind does not matter. */
	rate_event(&rate, 99 * MS);
	assert_int_equal(rate_hz(&rate, 99 * MS), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_never_sleeps_is_batch_after_8_ms),
		cmocka_unit_test(a_sleeping_thread_is_reported_after_8_sleeps),
		cmocka_unit_test(threads_that_wake_each_other_are_latency_critical),
		cmocka_unit_test(a_timer_alone_is_not_latency_critical),
		cmocka_unit_test(a_short_lived_thread_is_reported_at_its_end),
		cmocka_unit_test(a_correction_is_reported_at_the_end),
		cmocka_unit_test(a_wrong_prediction_is_corrected_in_time),
		cmocka_unit_test(a_wrong_batch_prediction_is_corrected_in_time),
		cmocka_unit_test(a_predicted_thread_starts_with_the_predicted_averages),
		cmocka_unit_test(predicted_averages_fade_before_maturity),
		cmocka_unit_test(a_short_lived_thread_does_not_confirm_its_prediction),
		cmocka_unit_test(a_right_prediction_survives_the_program_start),
		cmocka_unit_test(a_change_is_reported_and_replaces_the_vote),
		cmocka_unit_test(a_short_burst_of_wakeups_changes_no_tier),
		cmocka_unit_test(votes_change_at_most_once_per_second),
		cmocka_unit_test(a_long_lived_thread_is_reported_again),
		cmocka_unit_test(the_rate_of_a_stopped_event_falls),
	};

	return cmocka_run_group_tests_name("learner", tests, NULL, NULL);
}
