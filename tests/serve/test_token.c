/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/macros.h"
#include "serve/token.h"

#define SECRET "0123456789abcdef"

static char path[] = "/tmp/zernel-token-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	close(fd);
	return fd < 0 ? -1 : 0;
}

static int remove_file(void **state)
{
	return unlink(path);
}

static int read_text(const char *text, size_t length, mode_t mode, struct token *ret)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
	return token_read(path, ret);
}

static void a_file_of_one_line_is_a_token(void **state)
{
	struct token token = {};

	assert_int_equal(read_text(SECRET "\n", 17, 0600, &token), 0);
	assert_int_equal(token.length, 16);
	assert_string_equal(token.text, SECRET);
	assert_int_equal(read_text(SECRET "\r\n", 18, 0640, &token), 0);
	assert_string_equal(token.text, SECRET);
}

static void an_invalid_file_does_not_replace_the_token(void **state)
{
	struct token token = { .length = 3, .text = "old" };
	char huge[300];

	memset(huge, 'x', sizeof(huge));
	assert_int_equal(read_text(SECRET, 16, 0644, &token), -EPERM);
	assert_int_equal(read_text(SECRET, 15, 0600, &token), -EBADMSG);
	assert_int_equal(read_text("", 0, 0600, &token), -EBADMSG);
	assert_int_equal(read_text(huge, 256, 0600, &token), -EBADMSG);
	assert_int_equal(read_text("0123456789 abcdef", 17, 0600, &token), -EBADMSG);
	assert_int_equal(read_text("0123456789\0abcdef", 17, 0600, &token), -EBADMSG);
	assert_int_equal(token_read("/nowhere/at/all", &token), -ENOENT);
	assert_string_equal(token.text, "old");
	assert_int_equal(read_text(huge, 255, 0600, &token), 0);
	assert_int_equal(token.length, 255);
}

static void only_the_whole_token_is_accepted(void **state)
{
	static const char *const wrong[] = {
		"",
		"Bearer",
		"Bearer ",
		"Basic " SECRET,
		SECRET,
		"Bearer 0123",
		"Bearer " SECRET "0",
		"Bearer x123456789abcdef",
		"Bearer",
		"Bearer 0123456789abcdeF",
		"Bearer  " SECRET,
	};
	struct token token = { .length = 16, .text = SECRET };
	char huge[5000] = "Bearer ";

	memset(huge + 7, '0', sizeof(huge) - 8);
	assert_true(token_is_shown(&token, "Bearer " SECRET));
	assert_true(token_is_shown(&token, "bearer " SECRET));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(token_is_shown(&token, wrong[i]));
	assert_false(token_is_shown(&token, huge));
}

/* The subprotocols of a WebSocket. MDEyMzQ1Njc4OWFiY2RlZg is SECRET in base64url. */
static void only_the_whole_token_is_accepted_as_a_subprotocol(void **state)
{
	static const char *const wrong[] = {
		"",
		"zernel",
		"bearer.",
		"bearer.0123456789abcdef",
		"Bearer.MDEyMzQ1Njc4OWFiY2RlZg",
		"bearer.MDEyMzQ1Njc4OWFiY2Rl",
		"bearer.MDEyMzQ1Njc4OWFiY2RlZgA",
		"xbearer.MDEyMzQ1Njc4OWFiY2RlZg",
		"bearer.MDEyMzQ1Njc4O\nWFiY2RlZg",
	};
	const struct token token = { .length = 16, .text = SECRET };
	const struct token special = { .length = 16, .text = "~~~???~~~???~~~?" };
	char huge[5000] = "bearer.";

	memset(huge + 7, 'A', sizeof(huge) - 8);
	assert_true(token_is_offered(&token, "zernel, bearer.MDEyMzQ1Njc4OWFiY2RlZg"));
	assert_true(token_is_offered(&token, "bearer.MDEyMzQ1Njc4OWFiY2RlZg,zernel"));
	assert_true(token_is_offered(&special, "zernel, bearer.fn5-Pz8_fn5-Pz8_fn5-Pw"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(token_is_offered(&token, wrong[i]));
	assert_false(token_is_offered(&token, huge));
	assert_false(token_is_offered(&(struct token){}, "bearer."));
}

static void an_empty_token_is_never_accepted(void **state)
{
	assert_false(token_is_shown(&(struct token){}, "Bearer "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_one_line_is_a_token),
		cmocka_unit_test(an_invalid_file_does_not_replace_the_token),
		cmocka_unit_test(only_the_whole_token_is_accepted),
		cmocka_unit_test(only_the_whole_token_is_accepted_as_a_subprotocol),
		cmocka_unit_test(an_empty_token_is_never_accepted),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
