/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the output of tables, units and colors. */
#include "answers/capture.h"

static const struct column columns[] = { { "NAME" }, { "NR", true }, { "WHAT" }, {} };

static char *print_sample(struct term term)
{
	struct table *table = table_new(columns);
	struct capture capture = capture_begin();

	term.out = capture.out;
	table_cell(table, STYLE_TITLE, "%s", "a");
	table_cell(table, STYLE_PLAIN, "%d", 1);
	table_cell(table, STYLE_BAD, "%s", "long words at the end");
	table_cell(table, STYLE_TITLE, "%s", "zürich");
	table_cell(table, STYLE_PLAIN, "%d", 12345);
	table_cell(table, STYLE_PLAIN, "%s", "x");
	assert_int_equal(table_print(table, &term), 0);
	table_free(table);
	return capture_end(&capture);
}

static void test_columns_are_aligned(void **state)
{
	char *text = print_sample((struct term){});

	assert_string_equal(text, "NAME       NR  WHAT\n"
				  "a           1  long words at the end\n"
				  "zürich  12345  x\n");
	free(text);
}

static void test_lines_are_cut_at_the_terminal_width(void **state)
{
	char *text = print_sample((struct term){ .width = 19 });

	assert_string_equal(text, "NAME       NR  WHAT\n"
				  "a           1  long\n"
				  "zürich  12345  x\n");
	free(text);
	text = print_sample((struct term){ .width = 8 });
	assert_string_equal(text, "NAME\na\nzürich\n");
	free(text);
	text = print_sample((struct term){ .width = 3 });
	assert_string_equal(text, "NAM\na\nzür\n");
	free(text);
}

static void test_color_applies_to_the_text_only(void **state)
{
	char *text = print_sample((struct term){ .colour = true });

	assert_non_null(strstr(text, "\033[1ma\033[0m           1  \033[31mlong"));
	free(text);
}

static void test_control_characters_are_replaced(void **state)
{
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out };
	char *text;

	term_print(&term, STYLE_PLAIN, "a%sb\n", "\033]0;x\007\xc2\x9b\n");
	text = capture_end(&capture);
	assert_string_equal(text, "a?]0;x????b\n");
	free(text);
}

static void test_file_has_no_color_and_no_width(void **state)
{
	FILE *file = tmpfile();
	struct term term = term_open(file, COLOUR_AUTO);

	assert_false(term.colour);
	assert_int_equal(term.width, 0);
	assert_false(term_open(file, COLOUR_NEVER).colour);
	assert_true(term_open(file, COLOUR_ALWAYS).colour);
	assert_int_equal(term_open(file, COLOUR_ALWAYS).width, 0);
	fclose(file);
}

static void test_units(void **state)
{
	assert_string_equal(unit_bytes(0).text, "0 B");
	assert_string_equal(unit_bytes(1023).text, "1023 B");
	assert_string_equal(unit_bytes(1536).text, "1.5 KiB");
	assert_string_equal(unit_bytes(80ULL << 30).text, "80.0 GiB");
	assert_string_equal(unit_bytes(~0ULL).text, "16777216.0 TiB");
	assert_string_equal(unit_ns(0).text, "0 ns");
	assert_string_equal(unit_ns(999).text, "999 ns");
	assert_string_equal(unit_ns(2500000).text, "2.5 ms");
	assert_string_equal(unit_ns(7200ULL * NSEC_PER_SEC).text, "2.0 h");
	assert_string_equal(unit_count(999999).text, "999999");
	assert_string_equal(unit_count(1500000).text, "1.5 M");
	assert_string_equal(unit_age(119).text, "119 s");
	assert_string_equal(unit_age(120).text, "2 min");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns_are_aligned),
		cmocka_unit_test(test_lines_are_cut_at_the_terminal_width),
		cmocka_unit_test(test_color_applies_to_the_text_only),
		cmocka_unit_test(test_control_characters_are_replaced),
		cmocka_unit_test(test_file_has_no_color_and_no_width),
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
