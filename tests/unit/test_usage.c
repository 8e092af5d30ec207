/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/usage.h"

static void last_and_largest_values_are_kept(void **state)
{
	struct usage_part part = {};

	usage_add(&part, 5, 10);
	usage_add(&part, 9, 10);
	usage_add(&part, 2, 20);
	usage_add(&part, 0, 0);
	assert_int_equal(part.nr, 4);
	assert_int_equal(part.allocated_bytes, 0);
	assert_int_equal(part.reserved_bytes, 0);
	assert_int_equal(part.allocated_most, 9);
	assert_int_equal(part.reserved_most, 20);
}

static void values_last_until_the_next_report(void **state)
{
	struct usage usage = {};
	struct usage_part part;

	usage_add(&usage.parts[2], 7, 8);
	usage_add(&usage.parts[2], 3, 8);
	usage_add(&usage.parts[5], 1, 2);
	for (u32 i = 0; i < 2; i++)
		assert_false(usage_of_part(&usage, i, &part));
	assert_true(usage_of_part(&usage, 2, &part));
	assert_int_equal(part.allocated_most, 7);
	for (u32 i = 3; i < 5; i++) {
		assert_true(usage_of_part(&usage, i, &part));
		assert_int_equal(part.nr, 0);
		assert_int_equal(part.allocated_bytes, 3);
		assert_int_equal(part.allocated_most, 3);
		assert_int_equal(part.reserved_bytes, 8);
		assert_int_equal(part.reserved_most, 8);
	}
	assert_true(usage_of_part(&usage, 5, &part));
	assert_int_equal(part.nr, 1);
	assert_int_equal(part.allocated_bytes, 1);
	assert_int_equal(part.allocated_most, 3);
	assert_int_equal(part.reserved_most, 8);
}

/* Against a model that keeps the value at each moment. */
static void random_reports(void **state)
{
	for (u32 seed = 1; seed <= 2000; seed++) {
		u64 now[2] = {}, most[USAGE_PARTS][2] = {};
		struct usage usage = {};
		struct usage_part part;
		bool is_known = false;

		srandom(seed);
		for (u32 i = 0; i < USAGE_PARTS; i++) {
			most[i][0] = now[0];
			most[i][1] = now[1];
			for (long n = random() % 4; n > 0; n--) {
				is_known = true;
				for (u32 k = 0; k < 2; k++) {
					now[k] = (u64)random() << random() % 32;
					most[i][k] = now[k] > most[i][k] ? now[k] : most[i][k];
				}
				usage_add(&usage.parts[i], now[0], now[1]);
			}
			assert_int_equal(usage_of_part(&usage, i, &part), is_known);
			if (!is_known)
				continue;
			assert_int_equal(part.allocated_bytes, now[0]);
			assert_int_equal(part.reserved_bytes, now[1]);
			assert_int_equal(part.allocated_most, most[i][0]);
			assert_int_equal(part.reserved_most, most[i][1]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_and_largest_values_are_kept),
		cmocka_unit_test(values_last_until_the_next_report),
		cmocka_unit_test(random_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
