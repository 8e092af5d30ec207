/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/sequence.h"

#define OPERATION(name) (DETAIL_##name - COLLECTIVE_FIRST)

static void assert_call(const struct sequence *sequence, u64 number, u64 entered_ns,
			u64 returned_ns, u64 bytes)
{
	const struct collective_call *call = sequence_find(sequence, number);

	assert_non_null(call);
	assert_int_equal(call->entered_ns, entered_ns);
	assert_int_equal(call->returned_ns, returned_ns);
	assert_int_equal(call->bytes, bytes);
}

static void collectives_are_numbered(void **state)
{
	struct sequence sequence = {};

	assert_null(sequence_find(&sequence, 0));
	sequence_enter(&sequence, OPERATION(ALL_REDUCE), 4096, 10);
	sequence_return(&sequence, 10, true, 12);
	sequence_enter(&sequence, OPERATION(BROADCAST), 8, 20);
	assert_int_equal(sequence.nr, 2);
	assert_call(&sequence, 1, 10, 12, 4096);
	assert_call(&sequence, 2, 20, 0, 8);
	assert_int_equal(sequence_find(&sequence, 2)->operation, OPERATION(BROADCAST));
	assert_null(sequence_find(&sequence, 0));
	assert_null(sequence_find(&sequence, 3));
}

static void only_the_latest_calls_are_kept(void **state)
{
	struct sequence sequence = {};

	for (u64 i = 1; i <= 3 * SEQUENCE_KEPT; i++)
		sequence_enter(&sequence, OPERATION(ALL_REDUCE), 100 * i, i);
	for (u64 i = 0; i < SEQUENCE_KEPT; i++)
		assert_call(&sequence, sequence.nr - i, sequence.nr - i, 0,
			    100 * (sequence.nr - i));
	assert_null(sequence_find(&sequence, sequence.nr - SEQUENCE_KEPT));
}

static void a_rejected_call_takes_no_number(void **state)
{
	struct sequence sequence = {};

	for (u64 i = 1; i <= SEQUENCE_KEPT; i++)
		sequence_enter(&sequence, OPERATION(ALL_REDUCE), 4, i);
	sequence_enter(&sequence, OPERATION(ALL_REDUCE), 4, 100);
	sequence_return(&sequence, 100, false, 101);
	assert_int_equal(sequence.nr, SEQUENCE_KEPT);
	/* It overwrote the oldest one. */
	assert_null(sequence_find(&sequence, 1));
	assert_call(&sequence, 2, 2, 0, 4);
	assert_call(&sequence, SEQUENCE_KEPT, SEQUENCE_KEPT, 0, 4);
	/* The return of a call whose entry was not seen changes nothing. */
	sequence_return(&sequence, 777, true, 778);
	assert_call(&sequence, SEQUENCE_KEPT, SEQUENCE_KEPT, 0, 4);
}

static void numbers_wrap(void **state)
{
	struct sequence sequence = { .nr = ~0ULL - 2 };

	for (u64 i = 1; i <= 6; i++)
		sequence_enter(&sequence, OPERATION(ALL_REDUCE), i, i);
	assert_int_equal(sequence.nr, 3);
	for (u64 i = 1; i <= 6; i++)
		assert_call(&sequence, sequence.nr - 6 + i, i, 0, i);
	assert_null(sequence_find(&sequence, ~0ULL - 2));
}

/* A copy that was made while the next call was written does not show the next call as an old one.
 */
static void an_overwritten_call_is_not_found(void **state)
{
	struct sequence sequence = {}, copy;

	for (u64 i = 1; i <= SEQUENCE_KEPT; i++)
		sequence_enter(&sequence, OPERATION(ALL_REDUCE), 4, i);
	copy = sequence;
	sequence_enter(&copy, OPERATION(BROADCAST), 8, 50);
	copy.nr = sequence.nr;
	assert_null(sequence_find(&copy, 1));
	assert_call(&copy, 2, 2, 0, 4);
}

static void sends_and_receives_have_no_number(void **state)
{
	u32 nr = 0;

	for (u32 operation = 0; operation < COLLECTIVE_NR; operation++)
		nr += sequence_has(operation);
	assert_int_equal(nr, COLLECTIVE_NR - 2);
	assert_false(sequence_has(OPERATION(SEND)));
	assert_false(sequence_has(OPERATION(RECV)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_are_numbered),
		cmocka_unit_test(only_the_latest_calls_are_kept),
		cmocka_unit_test(a_rejected_call_takes_no_number),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(an_overwritten_call_is_not_found),
		cmocka_unit_test(sends_and_receives_have_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
