/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/collectives.h"

#define NR_CALLS 20000

static void test_the_first_calls_have_their_own_slot(void **state)
{
	for (u32 call = 0; call < COLLECTIVES_EXACT; call++) {
		assert_int_equal(collectives_slot(call), call);
		assert_int_equal(collectives_weight(call, call), 0);
		assert_int_equal(collectives_weight(call, call + 1), 1);
		assert_int_equal(collectives_weight(call, ~0ULL), 1);
	}
	assert_int_equal(collectives_slot(16), 16);
	assert_int_equal(collectives_slot(17), COLLECTIVES_KEPT);
	assert_int_equal(collectives_slot(18), 17);
	assert_int_equal(collectives_slot(4095), COLLECTIVES_KEPT);
	assert_int_equal(collectives_slot(~0ULL), COLLECTIVES_KEPT);
}

/* Each call is part of exactly one weight, for any number of calls. */
static void test_weights_add_up_to_the_number_of_calls(void **state)
{
	for (u64 nr = 0; nr <= NR_CALLS; nr++) {
		u64 sum = 0;

		for (u32 slot = 0; slot < COLLECTIVES_KEPT; slot++)
			sum += collectives_weight(slot, nr);
		assert_int_equal(sum, nr);
	}
}

/* A slot has the entry time of the first call that it stands for. No other call writes to it. */
static void test_a_slot_is_written_by_its_first_call_only(void **state)
{
	u64 next[COLLECTIVES_KEPT + 1] = {};
	u32 last = COLLECTIVES_KEPT;

	for (u64 call = 0; call < NR_CALLS; call++) {
		u32 slot = collectives_slot(call);

		if (slot == COLLECTIVES_KEPT)
			continue;
		assert_true(last == COLLECTIVES_KEPT || slot == last + 1);
		assert_int_equal(next[slot]++, 0);
		assert_int_equal(collectives_weight(slot, call), 0);
		assert_int_equal(collectives_weight(slot, call + 1), 1);
		last = slot;
	}
	assert_int_equal(last, COLLECTIVES_KEPT - 1);
}

/* The documented bound: a slot stands for at most an eighth of the calls, or for one call. */
static void test_weight_is_at_most_an_eighth_of_the_calls(void **state)
{
	for (u64 nr = 1; nr <= (u64)COLLECTIVES_EXACT << COLLECTIVES_OCTAVES; nr++)
		for (u32 slot = 0; slot < COLLECTIVES_KEPT; slot++)
			assert_true(collectives_weight(slot, nr) <= (nr < 8 ? 1 : nr / 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_calls_have_their_own_slot),
		cmocka_unit_test(test_weights_add_up_to_the_number_of_calls),
		cmocka_unit_test(test_a_slot_is_written_by_its_first_call_only),
		cmocka_unit_test(test_weight_is_at_most_an_eighth_of_the_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
