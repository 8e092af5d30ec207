/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/ledger.h"

#define A 0xa000
#define B 0xb000
#define C 0xc000

static u32 slot_of(struct ledger *ledger, u64 handle)
{
	return ledger_slot(ledger, ledger_handle(handle, false, 0));
}

static u64 queue(struct ledger *ledger, u64 handle)
{
	return ledger_queue(ledger, slot_of(ledger, handle));
}

static struct ledger_mark record(struct ledger *ledger, u64 handle)
{
	return ledger_mark(ledger, slot_of(ledger, handle));
}

static void sync_stream(struct ledger *ledger, u64 handle)
{
	struct ledger_mark mark = record(ledger, handle);

	ledger_complete(ledger, &mark);
}

static void test_an_empty_ledger_is_done(void **state)
{
	struct ledger ledger = {};

	assert_true(ledger_is_done(&ledger));
	sync_stream(&ledger, 0);
	assert_true(ledger_is_done(&ledger));
}

static void test_a_stream_sync_completes_its_stream_only(void **state)
{
	struct ledger ledger = {};

	queue(&ledger, A);
	queue(&ledger, B);
	sync_stream(&ledger, A);
	assert_false(ledger_is_done(&ledger));
	sync_stream(&ledger, B);
	assert_true(ledger_is_done(&ledger));
}

static void test_a_failed_operation_is_taken_back(void **state)
{
	struct ledger ledger = {};
	struct ledger_positions positions;

	queue(&ledger, A);
	ledger_unqueue(&ledger, slot_of(&ledger, A));
	assert_true(ledger_is_done(&ledger));
	queue(&ledger, A);
	queue(&ledger, A);
	ledger_positions(&ledger, &positions);
	ledger_unqueue(&ledger, slot_of(&ledger, A));
	assert_false(ledger_is_done(&ledger));
	/* The sync began before the operation was taken back. */
	ledger_complete_all(&ledger, &positions);
	assert_true(ledger_is_done(&ledger));
	/* What is done cannot be taken back. */
	ledger_unqueue(&ledger, slot_of(&ledger, A));
	assert_true(ledger_is_done(&ledger));
}

static void test_an_event_completes_up_to_its_record(void **state)
{
	struct ledger ledger = {};
	struct ledger_mark old, new;

	queue(&ledger, A);
	old = record(&ledger, A);
	queue(&ledger, A);
	new = record(&ledger, A);
	ledger_complete(&ledger, &old);
	assert_true(ledger_mark_is_done(&ledger, &old));
	assert_false(ledger_mark_is_done(&ledger, &new));
	assert_false(ledger_is_done(&ledger));
	ledger_complete(&ledger, &new);
	assert_true(ledger_is_done(&ledger));
	/* An older event that is queried later takes nothing back. */
	ledger_complete(&ledger, &old);
	assert_true(ledger_is_done(&ledger));
}

static void test_a_device_sync_completes_what_was_queued_at_its_start(void **state)
{
	struct ledger ledger = {};
	struct ledger_positions positions;

	queue(&ledger, A);
	queue(&ledger, 0);
	ledger_positions(&ledger, &positions);
	queue(&ledger, B); /* by another thread, during the sync */
	ledger_complete_all(&ledger, &positions);
	assert_false(ledger_is_done(&ledger));
	sync_stream(&ledger, B);
	assert_true(ledger_is_done(&ledger));
}

static void test_a_stream_that_waited_for_an_event_completes_it(void **state)
{
	struct ledger ledger = {};
	struct ledger_mark on_a, on_b;

	/* Compute on A, a collective on B after it, the optimizer on A after that. */
	queue(&ledger, A);
	on_a = record(&ledger, A);
	ledger_wait(&ledger, slot_of(&ledger, B), &on_a);
	queue(&ledger, B);
	on_b = record(&ledger, B);
	ledger_wait(&ledger, slot_of(&ledger, A), &on_b);
	queue(&ledger, A);
	sync_stream(&ledger, A);
	assert_true(ledger_is_done(&ledger));
}

static void test_a_wait_that_is_not_reached_completes_nothing(void **state)
{
	struct ledger ledger = {};
	struct ledger_mark early, on_b;

	queue(&ledger, A);
	early = record(&ledger, A);
	queue(&ledger, B);
	on_b = record(&ledger, B);
	ledger_wait(&ledger, slot_of(&ledger, A), &on_b);
	queue(&ledger, A);
	ledger_complete(&ledger, &early);
	assert_false(ledger_mark_is_done(&ledger, &on_b));
}

static void test_waits_are_followed_over_two_streams(void **state)
{
	struct ledger ledger = {};
	struct ledger_mark mark;

	queue(&ledger, C);
	mark = record(&ledger, C);
	ledger_wait(&ledger, slot_of(&ledger, B), &mark);
	mark = record(&ledger, B);
	ledger_wait(&ledger, slot_of(&ledger, A), &mark);
	sync_stream(&ledger, A);
	assert_true(ledger_is_done(&ledger));
}

static void test_captured_work_is_not_queued(void **state)
{
	struct ledger ledger = {};
	struct ledger_mark mark;

	ledger_capture(&ledger, slot_of(&ledger, A));
	assert_int_equal(queue(&ledger, A), 0);
	/* B joins the capture through an event of A. */
	mark = record(&ledger, A);
	assert_true(mark.is_captured);
	ledger_wait(&ledger, slot_of(&ledger, B), &mark);
	assert_int_equal(queue(&ledger, B), 0);
	assert_int_equal(queue(&ledger, C), 1);
	ledger_capture_end(&ledger);
	sync_stream(&ledger, C);
	assert_true(ledger_is_done(&ledger));
	assert_int_equal(queue(&ledger, B), 1);
	/* A mark of a graph completes nothing. */
	ledger_complete(&ledger, &mark);
	assert_false(ledger_is_done(&ledger));
}

static void test_streams_beyond_the_bound_are_done_with_the_device(void **state)
{
	struct ledger ledger = {};
	struct ledger_positions positions;

	for (u64 i = 1; i < 4 * LEDGER_STREAMS; i++)
		queue(&ledger, A * i);
	assert_true(ledger.nr_shared > 0);
	for (u64 i = 1; i < 4 * LEDGER_STREAMS; i++)
		sync_stream(&ledger, A * i);
	assert_false(ledger_is_done(&ledger));
	ledger_positions(&ledger, &positions);
	ledger_complete_all(&ledger, &positions);
	assert_true(ledger_is_done(&ledger));
}

/* PyTorch has 32 streams of each priority and uses a few of them at a time. */
static void test_a_few_streams_never_share(void **state)
{
	for (u64 first = 1; first < 1000; first++) {
		struct ledger ledger = {};

		for (u64 i = 0; i < 4; i++)
			queue(&ledger, 0x55d0a0000000 + first * 0x1230 + i * 0x90);
		assert_int_equal(ledger.nr_shared, 0);
	}
}

static void test_a_done_stream_gives_up_its_slot(void **state)
{
	struct ledger ledger = {};
	struct ledger_mark old;
	u64 handle = B;

	queue(&ledger, A);
	old = record(&ledger, A);
	sync_stream(&ledger, A);
	while (slot_of(&ledger, handle) != old.stream)
		handle += 0x10;
	queue(&ledger, handle);
	assert_int_equal(ledger.nr_shared, 0);
	/* The mark of the former stream shows nothing about the new one. */
	ledger_complete(&ledger, &old);
	assert_false(ledger_stream_is_done(&ledger.streams[old.stream]));
}

static void test_default_streams(void **state)
{
	assert_int_equal(ledger_handle(0, false, 7), LEDGER_LEGACY);
	assert_int_equal(ledger_handle(1, true, 7), LEDGER_LEGACY);
	assert_int_equal(ledger_handle(2, false, 7), ledger_handle(0, true, 7));
	assert_int_not_equal(ledger_handle(0, true, 7), ledger_handle(0, true, 8));
	assert_int_equal(ledger_handle(A, true, 7), A);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_ledger_is_done),
		cmocka_unit_test(test_a_stream_sync_completes_its_stream_only),
		cmocka_unit_test(test_a_failed_operation_is_taken_back),
		cmocka_unit_test(test_an_event_completes_up_to_its_record),
		cmocka_unit_test(test_a_device_sync_completes_what_was_queued_at_its_start),
		cmocka_unit_test(test_a_stream_that_waited_for_an_event_completes_it),
		cmocka_unit_test(test_a_wait_that_is_not_reached_completes_nothing),
		cmocka_unit_test(test_waits_are_followed_over_two_streams),
		cmocka_unit_test(test_captured_work_is_not_queued),
		cmocka_unit_test(test_streams_beyond_the_bound_are_done_with_the_device),
		cmocka_unit_test(test_a_few_streams_never_share),
		cmocka_unit_test(test_a_done_stream_gives_up_its_slot),
		cmocka_unit_test(test_default_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
