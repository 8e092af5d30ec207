/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/json_parts.h"

static const char *const keys[] = { "a", "b", NULL };

/* The text in memory of exactly the promised size, so that a sanitizer sees each byte beyond it. */
static char *copy_of(const char *text)
{
	char *copy = malloc(strlen(text) + YYJSON_PADDING_SIZE);

	memcpy(copy, text, strlen(text));
	memset(copy + strlen(text), 'x', YYJSON_PADDING_SIZE);
	return copy;
}

/* Adds up the elements of all pieces. Returns their number, or an error. */
static int sum_list(struct json_list *list, u64 *ret_sum, u32 *ret_pieces)
{
	yyjson_doc *piece;
	yyjson_val *item;
	size_t i, nr;
	int err, all = 0;

	*ret_sum = *ret_pieces = 0;
	while ((err = json_list_next(list, &piece)) == 1) {
		yyjson_arr_foreach(yyjson_doc_get_root(piece), i, nr, item) {
			*ret_sum += yyjson_get_uint(item);
			all++;
		}
		(*ret_pieces)++;
		yyjson_doc_free(piece);
	}
	return err < 0 ? err : all;
}

static void test_lists_and_rest(void **state)
{
	static const char text[] = "{\"s\":\"]}\\\"\",\"b\" : [ 1,[2],{\"x\":\"],\"} ],\"c\":[7],"
				   "\"a\":[],\"d\":{\"a\":[8]},\"b\":[9]}";
	CLEANUP(json_parts_clear) struct json_parts parts = {};
	CLEANUP_FREE char *copy = copy_of(text);
	struct json_list *list;
	u32 pieces;
	u64 sum;

	assert_int_equal(json_parts_new(copy, strlen(text), keys, 1, &parts), 0);
	CLEANUP_FREE char *rest = yyjson_write(parts.doc, 0, NULL);
	assert_string_equal(rest, "{\"s\":\"]}\\\"\",\"b\":[],\"c\":[7],\"a\":[],"
				  "\"d\":{\"a\":[8]},\"b\":[9]}");
	list = json_parts_list(&parts, "a");
	assert_non_null(list);
	assert_int_equal(list->nr, 0);
	assert_int_equal(sum_list(list, &sum, &pieces), 0);
	list = json_parts_list(&parts, "b");
	assert_int_equal(list->nr, 3);
	assert_int_equal(sum_list(list, &sum, &pieces), 3);
	assert_int_equal(sum, 1);
	assert_null(json_parts_list(&parts, "c"));
	assert_memory_equal(copy + strlen(text), "xxxx", YYJSON_PADDING_SIZE);
}

static void test_a_long_list_comes_in_pieces(void **state)
{
	CLEANUP(json_parts_clear) struct json_parts parts = {};
	CLEANUP_TEXT struct text text = {};
	const u32 nr = 100000;
	u32 pieces;
	u64 sum;

	text_add_string(&text, "{\"data\":{\"a\":[0");
	for (u32 i = 1; i < nr; i++) {
		char number[16];

		snprintf(number, sizeof(number), ",%u", i);
		text_add_string(&text, number);
	}
	text_add_string(&text, "]}}");
	size_t length = text.length;
	text_add_string(&text, "next"); /* what follows a line */
	assert_int_equal(json_parts_new(text.data, length, keys, 2, &parts), 0);
	assert_int_equal(json_parts_list(&parts, "a")->nr, nr);
	assert_int_equal(sum_list(json_parts_list(&parts, "a"), &sum, &pieces), nr);
	assert_int_equal(sum, (u64)nr * (nr - 1) / 2);
	assert_in_range(pieces, 5, 12);
	assert_string_equal(text.data + length, "next");
}

/* The list may be cut anywhere, but one of the parts is refused. */
static void test_text_that_is_not_json(void **state)
{
	static const char *const texts[] = {
		"",
		"{\"a\":[1,2}",
		"{\"a\":[1,,2]}",
		"{\"a\":[,]}",
		"{\"a\":[1,]}",
		"{\"a\":[{]}]}",
		"{\"a\":[\"]}",
		"{\"a\":[\"\\",
		"{\"a\":[1]",
		"{\"a\":[}",
		"{\"a\"",
		"{\"a\":",
		"{\"a\" [1]}",
		"}}}{\"a\":[1]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(json_parts_clear) struct json_parts parts = {};
		CLEANUP_FREE char *copy = copy_of(texts[i]);
		struct json_list *list;
		u32 pieces;
		u64 sum;
		int err = json_parts_new(copy, strlen(texts[i]), keys, 1, &parts);

		list = err == 0 ? json_parts_list(&parts, "a") : NULL;
		if (list)
			err = sum_list(list, &sum, &pieces);
		if (err != -EBADMSG)
			print_error("# %s\n", texts[i]);
		assert_int_equal(err, -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_and_rest),
		cmocka_unit_test(test_a_long_list_comes_in_pieces),
		cmocka_unit_test(test_text_that_is_not_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
