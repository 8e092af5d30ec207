/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/timeline.h"
#include "ipc/events_json.h"

static void add(struct timeline *timeline, u32 from, u32 to)
{
	for (u32 i = from; i < to; i++)
		timeline_add(timeline, &(struct event){ i, EVENT_STEP, 1, 1, i });
}

/* The next events for a reader. */
static struct events next(struct timeline *timeline, u64 *position)
{
	struct message *message = timeline_read(timeline, position);
	struct events events = {};

	if (message)
		assert_int_equal(events_from_json(message->text, message->length, &events), 0);
	message_unref(message);
	return events;
}

static void check_next(struct timeline *timeline, u64 *position, u32 first, u32 nr, u64 nr_lost)
{
	struct events events = next(timeline, position);

	assert_int_equal(events.nr, nr);
	assert_int_equal(events.nr_lost, nr_lost);
	for (u32 i = 0; i < nr; i++)
		assert_int_equal(events.list[i].value, first + i);
	events_done(&events);
}

static void test_each_reader_has_its_own_position(void **state)
{
	struct timeline timeline = {};
	u64 early, late;

	add(&timeline, 0, 3); /* no reader is open */
	assert_int_equal(timeline.nr_events, 0);
	assert_int_equal(timeline_open(&timeline, &early), 0);
	add(&timeline, 3, 5);
	assert_int_equal(timeline_open(&timeline, &late), 0);
	add(&timeline, 5, 7);
	check_next(&timeline, &early, 3, 4, 0);
	check_next(&timeline, &late, 5, 2, 0);
	assert_null(timeline_read(&timeline, &early));
	timeline_close(&timeline);
	add(&timeline, 7, 8);
	check_next(&timeline, &late, 7, 1, 0);
	timeline_close(&timeline);
	assert_null(timeline.ring);
}

static void test_a_slow_reader_gets_the_number_of_lost_events(void **state)
{
	struct timeline timeline = {};
	u64 position;

	assert_int_equal(timeline_open(&timeline, &position), 0);
	add(&timeline, 0, TIMELINE_EVENTS);
	check_next(&timeline, &position, 0, TIMELINE_EVENTS, 0);
	add(&timeline, 0, TIMELINE_EVENTS + 10);
	check_next(&timeline, &position, 10, TIMELINE_EVENTS, 10);
	timeline_close(&timeline);
}

static void test_internal_events_take_no_space(void **state)
{
	struct timeline timeline = {};
	u64 position;

	assert_int_equal(timeline_open(&timeline, &position), 0);
	timeline_add(&timeline, &(struct event){ .kind = EVENT_GPU });
	assert_null(timeline_read(&timeline, &position));
	timeline_close(&timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_reader_has_its_own_position),
		cmocka_unit_test(test_a_slow_reader_gets_the_number_of_lost_events),
		cmocka_unit_test(test_internal_events_take_no_space),
	};

	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
