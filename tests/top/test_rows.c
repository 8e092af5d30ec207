/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests rows, columns and keys of zernel top on a canvas. */
#include <locale.h>
#include <stdio.h>
#include "base/macros.h"
#include "top/made.h"

#define MS NSEC_PER_MSEC

/* Two jobs with three ranks each, in reverse order of pids, and one loader process. */
static struct snapshot *two_jobs(u64 second)
{
	struct snapshot *s = made_snapshot(second);
	struct snapshot_process *process;

	for (u32 i = 0; i < 6; i++) {
		u32 job = snapshot_add_job(s, i < 3 ? "/b" : "/a", i < 3 ? "second" : "first");

		process = made_process(s, 100 + i, job, i == 4 ? "odd" : "train");
		process->nr_ranks = 1;
		process->rank = 2 - (s32)(i % 3);
		process->busy_ns = 100 * MS * second;
		process->idle_ns[IDLE_LOCK] = 10 * MS * i * second;
		snapshot_add_thread(s, 1000 + i, ROLE_LAUNCHER)->pid = process->pid;
	}
	process = made_process(s, 200, 1, "worker");
	process->consumer_pid = 100;
	return s;
}

struct fixture {
	struct top top;
	struct canvas canvas;
};

static struct fixture begin(u32 width, u32 height)
{
	struct fixture f = { .top.sort = TOP_COLUMN_RANK };

	assert_int_equal(canvas_resize(&f.canvas, width, height), 0);
	return f;
}

static void end(struct fixture *f)
{
	canvas_done(&f->canvas);
	top_done(&f->top);
}

static void feed(struct fixture *f, u64 second)
{
	assert_int_equal(top_feed(&f->top, two_jobs(second)), 0);
}

static void press(struct fixture *f, enum top_key key)
{
	assert_int_equal(top_event(&f->top, &(struct top_event){ .key = key }), 0);
}

static void type(struct fixture *f, const char *text)
{
	for (; *text; text++)
		assert_int_equal(top_event(&f->top, &(struct top_event){ .key = TOP_KEY_CHARACTER,
									 .character = (u32)*text }),
				 0);
}

static void click(struct fixture *f, u32 x, u32 y)
{
	assert_int_equal(
		top_event(&f->top, &(struct top_event){ .key = TOP_KEY_CLICK, .x = x, .y = y }), 0);
}

static void draw(struct fixture *f)
{
	assert_int_equal(canvas_resize(&f->canvas, f->canvas.width, f->canvas.height), 0);
	top_draw(&f->top, &f->canvas);
}

/* Compares all rows as words: names of jobs, pids of processes, tids of threads. */
static void assert_rows(struct fixture *f, const char *expected)
{
	char text[512] = "";

	for (u32 i = 0; i < f->top.rows.nr; i++) {
		const struct top_row *row = &f->top.rows.rows[i];
		const struct snapshot *s = f->top.model.snapshot;
		size_t used = strlen(text);

		if (row->kind == TOP_ROW_JOB)
			snprintf(text + used, sizeof(text) - used, " %s", s->jobs[row->index].name);
		else
			snprintf(text + used, sizeof(text) - used, " %u",
				 row->kind == TOP_ROW_PROCESS ? s->processes[row->index].pid
							      : s->threads[row->index].tid);
	}
	assert_string_equal(text + 1, expected);
}

static void test_tree(void **state)
{
	struct fixture f = begin(80, 24);

	feed(&f, 1);
	assert_rows(&f, "second 102 101 100 first 105 104 103");
	press(&f, TOP_KEY_ENTER);
	assert_rows(&f, "second first 105 104 103");
	press(&f, TOP_KEY_ENTER);
	for (u32 i = 0; i < 3; i++)
		press(&f, TOP_KEY_DOWN);
	press(&f, TOP_KEY_ENTER);
	assert_rows(&f, "second 102 101 100 1000 200 first 105 104 103");
	type(&f, "t");
	assert_rows(&f, "second 102 1002 101 1001 100 1000 200 first 105 1005 104 1004 103 1003");
	type(&f, "t");
	assert_rows(&f, "second 102 101 100 first 105 104 103");
	end(&f);
}

static void test_sort_by_chosen_column(void **state)
{
	struct fixture f = begin(80, 24);

	feed(&f, 1);
	feed(&f, 2);
	type(&f, "s");
	for (enum top_column_id id = TOP_COLUMN_RANK; id < TOP_COLUMN_IDLE; id++)
		press(&f, TOP_KEY_DOWN);
	press(&f, TOP_KEY_ENTER);
	assert_rows(&f, "first 105 104 103 second 102 101 100");
	type(&f, "s");
	for (u32 i = 0; i < 20; i++)
		press(&f, TOP_KEY_UP);
	press(&f, TOP_KEY_ENTER);
	assert_rows(&f, "first 103 104 105 second 100 101 102");
	/* Escape keeps the order. */
	type(&f, "s");
	press(&f, TOP_KEY_DOWN);
	press(&f, TOP_KEY_ESCAPE);
	assert_rows(&f, "first 103 104 105 second 100 101 102");
	end(&f);
}

static void test_filter_by_name_pid_job_and_thread(void **state)
{
	static const struct {
		const char *filter, *rows;
	} cases[] = {
		{ "ODD", "first 104" },	    { "10", "second 102 101 100 first 105 104 103" },
		{ "105", "first 105" },	    { "first", "first 105 104 103" },
		{ "worker", "second 100" },
	};
	struct fixture f = begin(80, 24);

	feed(&f, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		type(&f, "/");
		type(&f, cases[i].filter);
		press(&f, TOP_KEY_ENTER);
		assert_rows(&f, cases[i].rows);
	}
	press(&f, TOP_KEY_ESCAPE);
	assert_rows(&f, "second 102 101 100 first 105 104 103");
	type(&f, "/q");
	assert_false(f.top.quit);
	draw(&f);
	assert_line(&f.canvas, 23, "/q");
	press(&f, TOP_KEY_BACKSPACE);
	press(&f, TOP_KEY_BACKSPACE);
	assert_rows(&f, "second 102 101 100 first 105 104 103");
	end(&f);
}

static void test_filter_is_bounded_and_keeps_whole_characters(void **state)
{
	struct fixture f = begin(80, 24);

	type(&f, "/");
	for (u32 i = 0; i < 2 * TOP_FILTER_LEN; i++)
		assert_int_equal(top_event(&f.top, &(struct top_event){ .key = TOP_KEY_CHARACTER,
									.character = 0x8a9e }),
				 0);
	assert_true(strlen(f.top.filter) < TOP_FILTER_LEN);
	assert_int_equal(strlen(f.top.filter) % 3, 0);
	assert_memory_equal(f.top.filter, "\xe8\xaa\x9e", 3);
	press(&f, TOP_KEY_BACKSPACE);
	assert_int_equal(strlen(f.top.filter) % 3, 0);
	end(&f);
}

static void test_selection_follows_the_process(void **state)
{
	struct fixture f = begin(80, 24);
	struct snapshot *s;

	feed(&f, 1);
	for (u32 i = 0; i < 5; i++)
		press(&f, TOP_KEY_DOWN);
	assert_int_equal(f.top.identity.id, 105);
	s = two_jobs(2);
	/* A rank moves to the other job. */
	s->processes[0].job = 2;
	assert_int_equal(top_feed(&f.top, s), 0);
	assert_int_equal(f.top.identity.id, 105);
	assert_int_equal(f.top.rows.rows[f.top.selected].index, 5);
	assert_int_equal(top_feed(&f.top, made_snapshot(3)), 0);
	assert_int_equal(f.top.selected, 0);
	press(&f, TOP_KEY_DOWN);
	press(&f, TOP_KEY_ENTER);
	end(&f);
}

static void test_mouse(void **state)
{
	struct fixture f = begin(80, 24);

	feed(&f, 1);
	feed(&f, 2);
	draw(&f);
	click(&f, 3, f.top.table_y + 2);
	assert_int_equal(f.top.selected, 2);
	click(&f, 3, f.top.table_y + 2);
	assert_rows(&f, "second 102 101 1001 100 first 105 104 103");
	press(&f, TOP_KEY_WHEEL_DOWN);
	assert_int_equal(f.top.selected, 5);
	press(&f, TOP_KEY_WHEEL_UP);
	assert_int_equal(f.top.selected, 2);
	/* Clicks on a title, on an empty line and outside the screen. */
	click(&f, 0, f.top.table_y - 1);
	assert_int_equal(f.top.sort, TOP_COLUMN_NAME);
	click(&f, 0, 22);
	click(&f, 500, 500);
	assert_int_equal(f.top.rows.rows[f.top.selected].index, 1);
	end(&f);
}

static void test_pause_keeps_the_screen(void **state)
{
	struct fixture f = begin(80, 24);

	feed(&f, 1);
	type(&f, "p");
	assert_int_equal(top_feed(&f.top, made_snapshot(2)), 0);
	assert_int_equal(f.top.rows.nr, 8);
	type(&f, "p");
	feed(&f, 3);
	assert_int_equal(top_strip(f.top.model.processes[0], 1), TOP_STRIP_GAP);
	end(&f);
}

/* One process: the GPU may have been idle for `open` % of the time. */
static void assert_idle(u32 idle, u32 open, const char *text)
{
	struct fixture f = begin(80, 24);

	for (u64 second = 1; second <= 2; second++) {
		struct snapshot *s = made_snapshot(second);
		struct snapshot_process *process = made_process(s, 7, 0, "train");

		process->busy_ns = (100 - idle - open) * 10 * MS * second;
		process->idle_ns[IDLE_DISK] = idle * 10 * MS * second;
		process->open_ns[IDLE_DISK] = open * 10 * MS * second;
		assert_int_equal(top_feed(&f.top, s), 0);
	}
	draw(&f);
	assert_line(&f.canvas, 4, text);
	end(&f);
}

static void test_unproven_process_is_marked(void **state)
{
	struct fixture f = begin(80, 24);
	struct snapshot *s = made_snapshot(1);

	made_process(s, 7, 0, "train")->gpu_evidence = GPU_EVIDENCE_NONE;
	assert_int_equal(top_feed(&f.top, s), 0);
	draw(&f);
	assert_line(
		&f.canvas, 4,
		"  7 unproven: trai    - -           - -                -     -       -         .");
	end(&f);
}

static void test_idle_share_is_a_number_or_a_range(void **state)
{
	assert_idle(
		20, 2,
		"  7 train             - -         21% disk             -     -       -        ..");
	assert_idle(
		20, 45,
		"  7 train             - -       20-65 disk             -     -       -        ..");
	assert_idle(
		0, 100,
		"  7 train             - -       0-100 disk             -     -       -        ..");
	assert_idle(
		20, 80,
		"  7 train             - -       20-99 disk             -     -       -        ..");
}

static void test_columns_in_80_characters(void **state)
{
	struct fixture f = begin(80, 24);

	feed(&f, 1);
	feed(&f, 2);
	draw(&f);
	assert_line(
		&f.canvas, 3,
		"JOB, PROCESS       RANK PHASE    IDLE BECAUSE       STEP STP/S  RUNQ99 PHASES");
	assert_line(&f.canvas, 4,
		    "- second                4 proc     9% lock             -     -       -");
	assert_line(
		&f.canvas, 5,
		" + 102 train          0 -         17% lock             -     -       -        ..");
	/* Columns without room are to the right. */
	for (u32 i = 0; i < 20; i++)
		press(&f, TOP_KEY_RIGHT);
	draw(&f);
	assert_line(&f.canvas, 3, "JOB, PROCESS        MEMORY PHASES data gpu collect optim");
	for (u32 i = 0; i < 20; i++)
		press(&f, TOP_KEY_LEFT);
	assert_int_equal(f.top.skip_columns, 0);
	end(&f);
}

static void test_any_terminal_size(void **state)
{
	static const enum top_mode modes[] = { TOP_MODE_TABLE, TOP_MODE_FILTER, TOP_MODE_SORT,
					       TOP_MODE_HELP };

	for (u32 width = 1; width < 130; width += width < 30 ? 1 : 7)
		for (u32 height = 1; height < 40; height += height < 12 ? 1 : 5)
			for (u32 mode = 0; mode < 4; mode++) {
				struct fixture f = begin(width, height);

				draw(&f);
				feed(&f, 1);
				type(&f, "t");
				press(&f, TOP_KEY_END);
				f.top.mode = modes[mode];
				f.top.choice = TOP_COLUMN_MEMORY;
				top_trouble(&f.top, "connection to zerneld lost;");
				draw(&f);
				end(&f);
			}
}

static void test_selected_row_is_visible(void **state)
{
	struct fixture f = begin(80, 10);

	feed(&f, 1);
	type(&f, "t");
	draw(&f);
	press(&f, TOP_KEY_END);
	draw(&f);
	assert_int_equal(f.top.selected, 14);
	assert_int_equal(f.top.first + f.top.table_height, 15);
	press(&f, TOP_KEY_PAGE_UP);
	press(&f, TOP_KEY_PAGE_UP);
	draw(&f);
	assert_true(f.top.selected >= f.top.first &&
		    f.top.selected < f.top.first + f.top.table_height);
	press(&f, TOP_KEY_HOME);
	draw(&f);
	assert_int_equal(f.top.first, 0);
	end(&f);
}

static void test_control_characters_are_replaced(void **state)
{
	struct canvas canvas = {};

	assert_int_equal(canvas_resize(&canvas, 12, 1), 0);
	canvas_print(&canvas, 0, 0, 12, CANVAS_PLAIN, "%s",
		     "a\033[2J\n\xc2\x9b"
		     "b\xe2\x80\xae");
	assert_line(&canvas, 0, "a?[2J???b");
	canvas_done(&canvas);
}

static void test_wide_characters_stay_whole(void **state)
{
	struct canvas canvas = {};

	assert_int_equal(canvas_resize(&canvas, 6, 1), 0);
	assert_int_equal(canvas_print(&canvas, 0, 0, 5, CANVAS_PLAIN, "a\u8a9e\u8a9e\u8a9e"), 5);
	assert_line(&canvas, 0, "a#_#_");
	/* A character over one half of a wide character removes the other half. */
	canvas_print(&canvas, 0, 2, 1, CANVAS_PLAIN, "x");
	assert_line(&canvas, 0, "a x#_");
	canvas_print(&canvas, 0, 3, 1, CANVAS_PLAIN, "y");
	assert_line(&canvas, 0, "a xy");
	assert_int_equal(canvas_print(&canvas, 0, 5, 9, CANVAS_PLAIN, "\u8a9e"), 0);
	assert_int_equal(canvas_print(&canvas, 7, 0, 9, CANVAS_PLAIN, "x"), 0);
	canvas_done(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_sort_by_chosen_column),
		cmocka_unit_test(test_filter_by_name_pid_job_and_thread),
		cmocka_unit_test(test_filter_is_bounded_and_keeps_whole_characters),
		cmocka_unit_test(test_selection_follows_the_process),
		cmocka_unit_test(test_mouse),
		cmocka_unit_test(test_pause_keeps_the_screen),
		cmocka_unit_test(test_idle_share_is_a_number_or_a_range),
		cmocka_unit_test(test_columns_in_80_characters),
		cmocka_unit_test(test_any_terminal_size),
		cmocka_unit_test(test_selected_row_is_visible),
		cmocka_unit_test(test_unproven_process_is_marked),
		cmocka_unit_test(test_control_characters_are_replaced),
		cmocka_unit_test(test_wide_characters_stay_whole),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("rows and keys of zernel top", tests, NULL, NULL);
}
