/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/gap.h"

static const struct lines_sum one = { .done_ns = 3, .open_ns = 5, .nr_samples = 1 };

static struct lines_sum_key key_of(u64 hash, u64 after)
{
	return (struct lines_sum_key){ .stack = { .hash = hash }, .after = after };
}

static void equal_sums_are_added(void **state)
{
	struct lines_sum_key a = key_of(1, 7), b = key_of(2, 7), c = key_of(1, 8);
	struct lines_gap gap = {};

	assert_true(gap_wait(&gap, &a, &one));
	assert_true(gap_wait(&gap, &b, &one));
	assert_true(gap_wait(&gap, &c, &one));
	assert_true(gap_wait(&gap, &a, &one));
	assert_int_equal(gap.nr_waiting, 3);
	assert_int_equal(gap.waiting[0].sum.done_ns, 6);
	assert_int_equal(gap.waiting[0].sum.open_ns, 10);
	assert_int_equal(gap.waiting[0].sum.nr_samples, 2);
	assert_int_equal(gap.waiting[1].sum.done_ns, 3);
	assert_int_equal(gap.waiting[2].key.after, 8);
}

static void each_member_of_a_key_counts(void **state)
{
	struct lines_sum_key keys[LINES_WAITING - 1] = { {} };
	struct lines_gap gap = {};

	keys[1].tid = 1;
	keys[2].cause = 1;
	keys[3].role = 1;
	keys[4].call = 1;
	keys[5].stack.tgid = 1;
	keys[6].after = 1;
	for (u32 i = 0; i < LINES_WAITING - 1; i++)
		assert_true(gap_wait(&gap, &keys[i], &one));
	assert_int_equal(gap.nr_waiting, LINES_WAITING - 1);
}

static void room_is_bounded(void **state)
{
	struct lines_gap gap = {};
	struct lines_sum_key key;

	for (u32 i = 0; i < LINES_WAITING; i++) {
		key = key_of(i + 1, 0);
		assert_true(gap_wait(&gap, &key, &one));
	}
	assert_true(gap_wait(&gap, &key, &one));
	key = key_of(LINES_WAITING + 1, 0);
	assert_false(gap_wait(&gap, &key, &one));
	assert_int_equal(gap.nr_waiting, LINES_WAITING);
}

static void gap_is_taken_once(void **state)
{
	struct lines_gap gap = {};

	assert_true(gap_take(&gap));
	assert_false(gap_take(&gap));
	gap_release(&gap);
	assert_true(gap_take(&gap));
}

static void launches_are_known(void **state)
{
	struct lines_gap gap = {};

	assert_false(gap_is_over(&gap, true));
	gap_launched(&gap, 7);
	assert_int_equal(gap.after, 7);
	assert_false(gap_is_over(&gap, false));
	assert_int_equal(gap.after, 7);
	assert_int_equal(gap.nr_launches, 1);
}

static void torn_gap_is_unknown(void **state)
{
	struct lines_gap gap = {};

	gap_launched(&gap, 7);
	gap_tear(&gap);
	assert_true(gap_is_over(&gap, true));
	assert_int_equal(gap.after, GAP_UNKNOWN);
	assert_int_equal(gap.nr_launches, 2);
	assert_false(gap_is_over(&gap, true));
}

/* A launch of the runtime counts when no launch of its driver follows. */
static void launch_of_the_runtime(void **state)
{
	struct lines_gap gap = { .after = 7, .is_through = 1 };

	assert_false(gap_is_over(&gap, true));
	assert_int_equal(gap.after, 7);
	assert_int_equal(gap.is_through, 0);
	gap.is_through = 1;
	assert_true(gap_is_over(&gap, false));
	assert_int_equal(gap.after, GAP_UNKNOWN);
	assert_int_equal(gap.is_through, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_sums_are_added),
		cmocka_unit_test(each_member_of_a_key_counts),
		cmocka_unit_test(room_is_bounded),
		cmocka_unit_test(gap_is_taken_once),
		cmocka_unit_test(launches_are_known),
		cmocka_unit_test(torn_gap_is_unknown),
		cmocka_unit_test(launch_of_the_runtime),
	};

	return cmocka_run_group_tests_name("gap", tests, NULL, NULL);
}
