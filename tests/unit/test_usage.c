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
	assert_int_equal(part.reserved_then, 10);
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
		assert_int_equal(part.reserved_then, 8);
	}
	assert_true(usage_of_part(&usage, 5, &part));
	assert_int_equal(part.nr, 1);
	assert_int_equal(part.allocated_bytes, 1);
	assert_int_equal(part.allocated_most, 3);
	assert_int_equal(part.reserved_then, 8);
	assert_int_equal(usage_nr_parts(&usage), 6);
	assert_int_equal(usage_nr_parts(&(struct usage){}), 0);
}

/* Against a model that keeps the values at each moment. */
static void random_reports(void **state)
{
	for (u32 seed = 1; seed <= 2000; seed++) {
		u64 allocated = 0, reserved = 0;
		struct usage usage = {};
		struct usage_part part;
		bool is_known = false;

		srandom(seed);
		for (u32 i = 0; i < USAGE_PARTS; i++) {
			u64 most = allocated, then = reserved;
			bool was_known = is_known;

			for (long n = random() % 4; n > 0; n--) {
				allocated = (u64)random() << random() % 32;
				reserved = allocated + (u64)random();
				if (!is_known || allocated > most) {
					most = allocated;
					then = reserved;
				}
				is_known = true;
				usage_add(&usage.parts[i], allocated, reserved);
			}
			assert_int_equal(usage_of_part(&usage, i, &part), is_known);
			if (!is_known)
				continue;
			assert_int_equal(part.allocated_bytes, allocated);
			assert_int_equal(part.reserved_bytes, reserved);
			assert_int_equal(part.allocated_most, most);
			assert_int_equal(part.reserved_then, then);
			assert_true(was_known || part.nr);
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
