/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static void test_it_grows(void **state)
{
	CLEANUP_TEXT struct text text = {};

	for (size_t i = 0; i < 100000; i++) {
		text_add_string(&text, "ab");
		text_add(&text, "cd", 1);
		assert_int_equal(text.length, 3 * (i + 1));
		assert_int_equal(text.data[text.length], '\0');
	}
	assert_int_equal(text_end(&text), 0);
	assert_int_equal(text.capacity, text.length + 1);
	assert_int_equal(strlen(text.data), 300000);
	assert_string_equal(text.data + 300000 - 6, "abcabc");
}

static void test_an_error_stays(void **state)
{
	CLEANUP_TEXT struct text text = {};

	text.error = -ENOMEM; /* as after an addition that failed */
	text_add_string(&text, "d");
	assert_null(text.data);
	assert_int_equal(text_end(&text), -ENOMEM);
}

static void test_an_empty_one(void **state)
{
	struct text text = {};

	assert_int_equal(text_end(&text), 0);
	assert_null(text.data);
	text_clear(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_grows),
		cmocka_unit_test(test_an_error_stays),
		cmocka_unit_test(test_an_empty_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
