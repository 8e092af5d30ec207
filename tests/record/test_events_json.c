/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/phase.h"
#include "ipc/events_json.h"

static void test_events_make_the_round_trip(void **state)
{
	static const struct event list[] = {
		{ 1, EVENT_PHASE, 10, 11, PHASE_COLLECTIVE },
		{ UINT64_MAX, EVENT_ROLE, UINT32_MAX, 12, ROLE_COLLECTIVE_HELPER },
		{ 3, EVENT_STEP, 10, 10, UINT32_MAX },
		{ 4, EVENT_THREAD_EXIT, 10, 12, 0 },
		{ 5, EVENT_EXIT, 10, 10, 0 },
	};
	struct events events = { .nr_lost = 7, .list = (struct event *)list, .nr = 5 }, read = {};
	CLEANUP_FREE char *text = NULL;
	size_t length;

	assert_int_equal(events_to_json(&events, &text, &length), 0);
	assert_int_equal(strlen(text), length);
	assert_int_equal(events_from_json(text, length, &read), 0);
	assert_int_equal(read.nr, 5);
	assert_int_equal(read.nr_lost, 7);
	assert_memory_equal(read.list, list, sizeof(list));
	/* More events are appended to the existing ones. */
	assert_int_equal(events_from_json(text, length, &read), 0);
	assert_int_equal(read.nr, 10);
	assert_int_equal(read.nr_lost, 14);
	events_done(&read);
}

static void test_internal_events_are_left_out(void **state)
{
	struct event list[] = { { .kind = EVENT_GPU }, { .kind = EVENT_NR } };
	struct events events = { .list = list, .nr = 2 };
	CLEANUP_FREE char *text = NULL;
	size_t length;

	assert_false(event_is_told(&list[0]));
	assert_false(event_is_told(&list[1]));
	assert_int_equal(events_to_json(&events, &text, &length), 0);
	assert_string_equal(text, "{\"lost\":0,\"events\":[]}");
}

static int read_text(const char *text, size_t *ret_nr)
{
	struct events events = {};
	int err = events_from_json(text, strlen(text), &events);

	*ret_nr = events.nr;
	events_done(&events);
	return err;
}

static void test_invalid_input_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"lost\":0}",
		"{\"events\":[]}",
		"{\"lost\":-1,\"events\":[]}",
		"{\"lost\":0,\"events\":{}}",
		"{\"lost\":0,\"events\":[7]}",
		"{\"lost\":0,\"events\":[[]]}",
		"{\"lost\":0,\"events\":[[1,\"phase\",2,3]]}",
		"{\"lost\":0,\"events\":[[1,\"phase\",2,3,\"fry\"]]}",
		"{\"lost\":0,\"events\":[[1,\"phase\",2,3,1]]}",
		"{\"lost\":0,\"events\":[[1,\"step\",2,3,\"unknown\"]]}",
		"{\"lost\":0,\"events\":[[1,\"step\",2,4294967296,1]]}",
		"{\"lost\":0,\"events\":[[-1,\"step\",2,3,1]]}",
		"{\"lost\":0,\"events\":[[1,7,2,3,1]]}",
	};
	size_t nr;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(read_text(texts[i], &nr), -EBADMSG);
		assert_int_equal(nr, 0);
	}
}

static void test_kinds_of_a_newer_zerneld_are_skipped(void **state)
{
	size_t nr;

	assert_int_equal(read_text("{\"lost\":0,\"more\":1,\"events\":[[1,\"boil\",2,3,{}],"
				   "[1,\"step\",2,3,9]]}",
				   &nr),
			 0);
	assert_int_equal(nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_make_the_round_trip),
		cmocka_unit_test(test_internal_events_are_left_out),
		cmocka_unit_test(test_invalid_input_is_refused),
		cmocka_unit_test(test_kinds_of_a_newer_zerneld_are_skipped),
	};

	return cmocka_run_group_tests_name("events json", tests, NULL, NULL);
}
