/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macros.h"
#include "core/turns.h"

#define MS 1000000ULL

static struct turn_name name_of(u64 task)
{
	return (struct turn_name){ { 7, task } };
}

/* A task leaves the CPU. */
static void leave(struct turns *turns, u64 task, u64 now)
{
	struct turn_name name = name_of(task);

	if (!turns_is_short(turns, now))
		turns_end(turns, &name, now);
}

/* The parts of a wait by task, of which there are fewer than 16. Returns what has no name. */
static u64 parts(struct turns *turns, u64 leaving, u64 waited, u64 now, u64 ret[static 16])
{
	struct turns_walk walk = { .leaving = name_of(leaving),
				   .until_ns = now,
				   .left_ns = waited };

	for (u32 i = 0; i < 16; i++)
		ret[i] = 0;
	for (u32 i = 0; i < TURNS && walk.left_ns; i++) {
		struct turn_name name = {};
		u64 part = turns_part(turns, i, &walk, &name), was = walk.left_ns;

		if (part)
			ret[name.words[1]] += part;
		if (!walk.left_ns && !part)
			return was;
	}
	return walk.left_ns;
}

static void each_task_has_the_time_that_it_ran(void **state)
{
	struct turns turns = {};
	u64 ret[16];

	leave(&turns, 1, 10 * MS);
	leave(&turns, 2, 13 * MS);
	leave(&turns, 3, 14 * MS);
	leave(&turns, 2, 18 * MS);
	assert_int_equal(parts(&turns, 2, 8 * MS, 18 * MS, ret), 0);
	assert_int_equal(ret[1], 0);
	assert_int_equal(ret[2], 7 * MS);
	assert_int_equal(ret[3], 1 * MS);
	/* The wait began in a turn. */
	assert_int_equal(parts(&turns, 2, 9 * MS, 18 * MS, ret), 0);
	assert_int_equal(ret[1], 1 * MS);
}

static void a_short_turn_is_a_part_of_the_next(void **state)
{
	struct turns turns = {};
	u64 ret[16];

	leave(&turns, 1, 10 * MS);
	leave(&turns, 2, 10 * MS + 50000);
	leave(&turns, 3, 12 * MS);
	assert_int_equal(parts(&turns, 3, 2 * MS, 12 * MS, ret), 0);
	assert_int_equal(ret[3], 2 * MS);
}

/* A task that was away for a short time did not wait for itself. */
static void a_short_wait_is_that_of_the_task_that_leaves(void **state)
{
	struct turns turns = {};
	u64 ret[16];

	leave(&turns, 1, 10 * MS);
	leave(&turns, 2, 10 * MS + 60000);
	assert_int_equal(parts(&turns, 2, 60000, 10 * MS + 60000, ret), 0);
	assert_int_equal(ret[2], 60000);
	assert_int_equal(ret[1], 0);
}

static void what_is_too_old_has_no_name(void **state)
{
	struct turns turns = {};
	u64 ret[16];

	for (u64 i = 1; i <= 12; i++)
		leave(&turns, i, i * MS);
	assert_int_equal(parts(&turns, 12, 11 * MS, 12 * MS, ret), (11 - (TURNS - 1)) * MS);
	assert_int_equal(ret[12], 1 * MS);
	assert_int_equal(ret[12 - (TURNS - 2)], 1 * MS);
	assert_int_equal(ret[12 - (TURNS - 1)], 0);
}

static void turns_with_one_name_are_one(void **state)
{
	struct turns turns = {};
	u64 ret[16];

	leave(&turns, 1, 1 * MS);
	for (u64 i = 2; i <= 100; i++)
		leave(&turns, 2, i * MS);
	assert_int_equal(parts(&turns, 2, 99 * MS, 100 * MS, ret), 0);
	assert_int_equal(ret[2], 99 * MS);
}

/* The task that leaves has had the CPU since before the first turn that is known. */
static void no_turn_is_known(void **state)
{
	struct turns turns = {};
	u64 ret[16];

	assert_int_equal(parts(&turns, 3, 5 * MS, 6 * MS, ret), 0);
	assert_int_equal(ret[3], 5 * MS);
}

/* Against a list of all turns, for waits that the known turns cover. */
static void random_turns(void **state)
{
	for (u32 round = 0; round < 100000; round++) {
		struct turns turns = {};
		u64 now = 1000 * MS, begun = now, ret[16], expected[16] = {}, sum = 0, last = 0;

		leave(&turns, 15, now);
		for (u32 i = 0, nr = 1 + (u32)rand() % (TURNS - 2); i < nr; i++) {
			u64 ns = TURN_MIN_NS + (u64)rand() % (10 * MS);

			last = (u64)rand() % 15;
			now += ns;
			expected[last] += ns;
			leave(&turns, last, now);
		}
		assert_int_equal(parts(&turns, last, now - begun, now, ret), 0);
		for (u32 i = 0; i < 16; i++) {
			assert_int_equal(ret[i], expected[i]);
			sum += ret[i];
		}
		assert_int_equal(sum, now - begun);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_task_has_the_time_that_it_ran),
		cmocka_unit_test(a_short_turn_is_a_part_of_the_next),
		cmocka_unit_test(a_short_wait_is_that_of_the_task_that_leaves),
		cmocka_unit_test(what_is_too_old_has_no_name),
		cmocka_unit_test(turns_with_one_name_are_one),
		cmocka_unit_test(no_turn_is_known),
		cmocka_unit_test(random_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
