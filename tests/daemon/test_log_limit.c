/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/log_limit.h"

#define NOW (1000 * NSEC_PER_SEC)

static void test_one_line_for_each_user(void **state)
{
	struct log_limit limit = {};
	u64 nr = 99;

	assert_true(log_limit_allows(&limit, 1000, NOW, &nr));
	assert_int_equal(nr, 0);
	for (u32 i = 0; i < 500; i++)
		assert_false(log_limit_allows(&limit, 1000, NOW + LOG_LIMIT_NS - 1, &nr));
	/* The flood of one user hides no line of another. */
	assert_true(log_limit_allows(&limit, 1001, NOW, &nr));
	assert_int_equal(nr, 0);
	assert_true(log_limit_allows(&limit, 1000, NOW + LOG_LIMIT_NS, &nr));
	assert_int_equal(nr, 500);
	assert_true(log_limit_allows(&limit, 1000, NOW + 2 * LOG_LIMIT_NS, &nr));
	assert_int_equal(nr, 0);
}

static void test_many_users(void **state)
{
	struct log_limit limit = {};
	u32 nr_lines = 0;
	u64 nr = 0;

	for (u32 uid = 0; uid < 1000; uid++)
		nr_lines += log_limit_allows(&limit, uid, NOW, &nr);
	assert_int_equal(nr_lines, LOG_LIMIT_USERS);
	assert_false(log_limit_allows(&limit, 0, NOW, &nr));
	/* All that was left out is said once, also that of a user who lost its place. */
	for (u32 uid = 2000; uid < 2000 + LOG_LIMIT_USERS; uid++) {
		u64 nr_of_line = 0;

		assert_true(log_limit_allows(&limit, uid, NOW + LOG_LIMIT_NS, &nr_of_line));
		nr += nr_of_line;
	}
	assert_int_equal(nr, 1000 - LOG_LIMIT_USERS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_line_for_each_user),
		cmocka_unit_test(test_many_users),
	};

	return cmocka_run_group_tests_name("log limit", tests, NULL, NULL);
}
