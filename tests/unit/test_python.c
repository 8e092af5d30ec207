/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Interpreters that were made up: some are sound, others have cycles, wild pointers, or no end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/bytes.h"
#include "core/python.h"

#define BASE	     0x10000ULL
#define MEMORY_BYTES (1U << 18)

#define RUNTIME	    BASE
#define INTERPRETER (BASE + 0x1000)
#define THREADS	    (BASE + 0x2000)
#define CFRAME	    (BASE + 0x6000)
#define CODE	    (BASE + 0x7000)
#define NAME	    (BASE + 0x8000)
#define FILE_NAME   (BASE + 0x9000)
#define TABLE	    (BASE + 0xa000)
#define FRAMES	    (BASE + 0x10000)
#define FRAME_BYTES 256
#define THREAD_STEP 512

struct fake {
	u8 bytes[MEMORY_BYTES];
	u32 nr_reads;
	struct python_offsets offsets;
	struct python_memory memory;
};

static struct fake fake;

static long fake_read(void *ctx, void *to, u32 size, u64 from)
{
	struct fake *f = ctx;

	f->nr_reads++;
	if (from < BASE || from - BASE > MEMORY_BYTES - size)
		return -EFAULT;
	memcpy(to, f->bytes + (from - BASE), size);
	return 0;
}

static void put(u64 at, u64 value)
{
	put_u64(fake.bytes + (at - BASE), value);
}

static void put_text(u64 at, const char *text, u32 width)
{
	const struct python_offsets *o = &fake.offsets;
	u64 data = at + (width == 1 ? o->text_ascii : o->text_other);

	put(at + o->text_length, strlen(text));
	put_u32(fake.bytes + (at + o->text_state - BASE),
		(width | PYTHON_IS_COMPACT | (width == 1 ? PYTHON_IS_ASCII : 0))
			<< PYTHON_STATE_SHIFT);
	for (size_t i = 0; text[i]; i++)
		fake.bytes[data - BASE + i * width] = (u8)text[i];
}

static u64 frame_at(u32 i)
{
	return FRAMES + (u64)i * FRAME_BYTES;
}

/* A thread with `depth` frames. Each executes the instruction with its own number. */
static void make(u32 version, u32 depth)
{
	const struct python_offsets *o = &fake.offsets;

	memset(&fake, 0, sizeof(fake));
	fake.memory = (struct python_memory){ .read = fake_read, .ctx = &fake };
	assert_int_equal(python_offsets_of(version, NULL, 0, &fake.offsets), 0);
	put(RUNTIME + o->runtime_interpreters, INTERPRETER);
	put(INTERPRETER + o->interpreter_threads, THREADS);
	put(THREADS + o->thread_native_id, 4711);
	put(THREADS + o->thread_frame, CFRAME);
	put(CFRAME + o->cframe_frame, frame_at(0));
	for (u32 i = 0; i < depth; i++) {
		put(frame_at(i) + o->frame_code, CODE);
		put(frame_at(i) + o->frame_instruction, CODE + o->code_instructions + 2ULL * i);
		put(frame_at(i) + o->frame_previous, i + 1 < depth ? frame_at(i + 1) : 0);
	}
	put(CODE + o->code_name, NAME);
	put(CODE + o->code_file, FILE_NAME);
	put(CODE + o->code_lines, TABLE);
	put_u32(fake.bytes + (CODE + o->code_first_line - BASE), 140);
	put_text(NAME, "collate", 1);
	put_text(FILE_NAME, "/job/train.py", 1);
	put(TABLE + o->bytes_length, 4);
}

static int walk(struct python_stack *ret)
{
	fake.nr_reads = 0;
	return python_stack_read(&fake.memory, &fake.offsets, RUNTIME, 4711, ret);
}

static void frames_are_read_from_the_innermost(void **state)
{
	static const u32 versions[] = { 0x030b02f0, 0x030c01f0 };
	struct python_stack stack;

	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		make(versions[v], 5);
		assert_int_equal(walk(&stack), 0);
		assert_int_equal(stack.nr, 5);
		assert_false(stack.is_cut);
		for (u32 i = 0; i < 5; i++) {
			assert_true(stack.frames[i].code == CODE);
			assert_int_equal(stack.frames[i].instruction, 2 * i);
		}
	}
}

static void entries_into_the_interpreter_are_left_out(void **state)
{
	struct python_stack stack;

	make(0x030c01f0, 3);
	fake.bytes[frame_at(1) + fake.offsets.frame_owner - BASE] = PYTHON_OWNER_NO_FUNCTION;
	assert_int_equal(walk(&stack), 0);
	assert_int_equal(stack.nr, 2);
	assert_int_equal(stack.frames[1].instruction, 4);
}

static void a_thread_is_found_among_others(void **state)
{
	struct python_stack stack;
	const struct python_offsets *o = &fake.offsets;

	make(0x030b02f0, 2);
	for (u32 i = 1; i < 20; i++) {
		put(THREADS + (u64)i * THREAD_STEP + o->thread_native_id, i);
		put(THREADS + (u64)i * THREAD_STEP + o->thread_next,
		    THREADS + (u64)(i - 1) * THREAD_STEP);
	}
	put(INTERPRETER + o->interpreter_threads, THREADS + 19ULL * THREAD_STEP);
	assert_int_equal(walk(&stack), 0);
	assert_int_equal(stack.nr, 2);
	/* Another interpreter comes first. */
	put(BASE + 0x1800 + o->interpreter_next, INTERPRETER);
	put(RUNTIME + o->runtime_interpreters, BASE + 0x1800);
	assert_int_equal(walk(&stack), 0);
	assert_int_equal(python_stack_read(&fake.memory, o, RUNTIME, 12345, &stack), -ESRCH);
}

/* The interpreter may know the thread, which is not taken for one that it does not know. */
static void a_thread_behind_the_last_one_is_not_unknown(void **state)
{
	const struct python_offsets *o = &fake.offsets;
	u64 states = FRAMES + 2 * FRAME_BYTES;
	struct python_stack stack;

	make(0x030b02f0, 2);
	for (u32 i = 1; i <= PYTHON_THREADS_MAX; i++) {
		u64 at = states + (u64)i * THREAD_STEP;

		put(at + o->thread_native_id, i);
		put(at + o->thread_next, i == 1 ? THREADS : at - THREAD_STEP);
	}
	put(INTERPRETER + o->interpreter_threads, states + PYTHON_THREADS_MAX * THREAD_STEP);
	assert_int_equal(walk(&stack), -E2BIG);
	put(INTERPRETER + o->interpreter_threads, states + (PYTHON_THREADS_MAX - 1) * THREAD_STEP);
	assert_int_equal(walk(&stack), 0);
}

static void a_deep_stack_is_cut(void **state)
{
	struct python_stack stack;

	make(0x030b02f0, PYTHON_FRAMES_MAX);
	assert_int_equal(walk(&stack), 0);
	assert_int_equal(stack.nr, PYTHON_FRAMES_MAX);
	assert_false(stack.is_cut);
	make(0x030b02f0, 200);
	assert_int_equal(walk(&stack), 0);
	assert_int_equal(stack.nr, PYTHON_FRAMES_MAX);
	assert_true(stack.is_cut);
}

static void cycles_and_wild_pointers_end(void **state)
{
	const struct python_offsets *o = &fake.offsets;
	struct python_stack stack;

	make(0x030b02f0, 3);
	put(frame_at(2) + o->frame_previous, frame_at(0));
	assert_int_equal(walk(&stack), 0);
	assert_true(stack.is_cut);
	/* A cycle of frames that are no functions. */
	make(0x030c01f0, 1);
	fake.bytes[frame_at(0) + o->frame_owner - BASE] = PYTHON_OWNER_NO_FUNCTION;
	put(frame_at(0) + o->frame_previous, frame_at(0));
	assert_int_equal(walk(&stack), -EFAULT);
	assert_true(fake.nr_reads < 8 * PYTHON_STEPS_MAX);
	/* A cycle of threads, and one of interpreters. */
	make(0x030b02f0, 1);
	put(THREADS + o->thread_native_id, 1);
	put(THREADS + o->thread_next, THREADS);
	assert_int_equal(walk(&stack), -E2BIG);
	put(INTERPRETER + o->interpreter_threads, 0);
	put(INTERPRETER + o->interpreter_next, INTERPRETER);
	assert_int_equal(walk(&stack), -E2BIG);
	assert_true(fake.nr_reads < 4 * PYTHON_THREADS_MAX);
	make(0x030b02f0, 1);
	put(CFRAME + o->cframe_frame, 0xdead000000000000);
	assert_int_equal(walk(&stack), -EFAULT);
	put(RUNTIME + o->runtime_interpreters, ~0ULL);
	assert_int_equal(walk(&stack), -ESRCH);
}

static void names_are_copied_and_long_ones_lose_their_beginning(void **state)
{
	struct python_code code;
	char text[4 * PYTHON_FILE_BYTES + 1], path[400];

	make(0x030b02f0, 1);
	assert_true(python_code_read(&fake.memory, &fake.offsets, CODE, 0, &code));
	assert_int_equal(code.first_line, 140);
	assert_int_equal(code.table_bytes, 4);
	assert_int_equal(code.part_bytes, 4);
	python_text_print(&code.name, code.name_bytes, sizeof(code.name_bytes), text, sizeof(text));
	assert_string_equal(text, "collate");
	assert_false(code.file.is_cut);
	memset(path, 'a', sizeof(path));
	strcpy(path + sizeof(path) - sizeof("/train.py"), "/train.py");
	put_text(FILE_NAME, path, 2);
	assert_true(python_code_read(&fake.memory, &fake.offsets, CODE, 0, &code));
	python_text_print(&code.file, code.file_bytes, sizeof(code.file_bytes), text, sizeof(text));
	assert_true(code.file.is_cut);
	assert_int_equal(strlen(text), PYTHON_FILE_BYTES / 2);
	assert_string_equal(text + strlen(text) - strlen("/train.py"), "/train.py");
	/* A part behind the end of the table, and a text that is none. */
	assert_false(python_code_read(&fake.memory, &fake.offsets, CODE, 1, &code));
	put_u32(fake.bytes + (NAME + fake.offsets.text_state - BASE), 0);
	assert_false(python_code_read(&fake.memory, &fake.offsets, CODE, 0, &code));
}

static void unprintable_characters_are_replaced(void **state)
{
	static const struct {
		u32 width, length;
		const char *bytes;
		const char *text;
	} rows[] = {
		{ 1, 3,
		  "a\x1b"
		  "b",
		  "a?b" },
		{ 1, 2, "\xe9\x9b", "\xc3\xa9?" },
		{ 2, 2, "\xac\x20\x00\xd8", "\xe2\x82\xac?" },
		{ 4, 2, "\x00\xf6\x01\x00\x00\x00\x11\x00", "\xf0\x9f\x98\x80?" },
		{ 3, 1, "abc", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct python_text text = { .width = rows[i].width, .length = rows[i].length };
		char printed[32];

		python_text_print(&text, (const u8 *)rows[i].bytes, 8, printed, sizeof(printed));
		assert_string_equal(printed, rows[i].text);
	}
}

/* Each form of an entry, as the documentation of the table describes it. */
static void lines_follow_from_the_table(void **state)
{
	static const u8 table[] = {
		0x80 | 0 << 3 | 1,  0x12,		 /* short: 2 units in line 10 */
		0x80 | 11 << 3 | 0, 1,	  2,		 /* one line further: 1 unit in line 11 */
		0x80 | 12 << 3 | 0, 1,	  2,		 /* two lines further: 13 */
		0x80 | 13 << 3 | 0, 0x07,		 /* -3: 10 */
		0x80 | 14 << 3 | 2, 0x68, 0x01, 0, 1, 1, /* +52: 62, 3 units */
		0x80 | 15 << 3 | 0,			 /* no line: still 62 */
		0x80 | 10 << 3 | 7, 1,	  2,		 /* 8 units in line 62 */
	};
	static const struct {
		u32 unit, line;
	} rows[] = { { 0, 10 }, { 1, 10 }, { 2, 11 }, { 3, 13 },  { 4, 10 }, { 5, 62 },
		     { 7, 62 }, { 8, 62 }, { 9, 62 }, { 16, 62 }, { 17, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(python_line(table, sizeof(table), 10, 2 * rows[i].unit),
				 rows[i].line);
	assert_int_equal(python_line(table, sizeof(table), 10, ~0U), 0);
	assert_int_equal(python_line(table, 0, 10, 0), 0);
	/* A function with free variables begins with an instruction that has no line. */
	assert_int_equal(python_line((const u8[]){ 0x80 | 15 << 3 }, 1, 10, 0), 10);
	/* A table that was cut has the right line or none. */
	for (u32 size = 0; size < sizeof(table); size++)
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			u32 line = python_line(table, python_complete_entries(table, size), 10,
					       2 * rows[i].unit);

			assert_true(line == 0 || line == rows[i].line);
		}
}

static void offsets_that_are_impossible_are_refused(void **state)
{
	u8 head[PYTHON_HEAD_BYTES] = "xdebugpy";
	struct python_offsets offsets;

	put_u64(head + 8, 0x030d05f0);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), 0);
	assert_int_equal(python_offsets_of(0x030d05f0, head, 64, &offsets), -EINVAL);
	assert_int_equal(python_offsets_of(0x030d04f0, head, sizeof(head), &offsets), -EINVAL);
	put_u64(head + 30 * 8, 5000);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), -EINVAL);
	put_u64(head + 30 * 8, 1ULL << 40);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), -EINVAL);
	/* Members of a frame are in the bytes that are copied, and words are aligned. */
	put_u64(head + 30 * 8, PYTHON_FRAME_BYTES);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), -EINVAL);
	put_u64(head + 30 * 8, 12);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), -EINVAL);
	put_u64(head + 30 * 8, 0);
	put_u64(head + 33 * 8, PYTHON_FRAME_BYTES);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), -EINVAL);
	put_u64(head + 33 * 8, PYTHON_FRAME_BYTES - 1);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), 0);
	put_u64(head + 16, 1);
	assert_int_equal(python_offsets_of(0x030d05f0, head, sizeof(head), &offsets), -ENOTSUP);
	assert_int_equal(python_offsets_of(0x030a0df0, head, sizeof(head), &offsets), -ENOTSUP);
	assert_int_equal(python_offsets_of(0x030f00f0, head, sizeof(head), &offsets), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_read_from_the_innermost),
		cmocka_unit_test(entries_into_the_interpreter_are_left_out),
		cmocka_unit_test(a_thread_is_found_among_others),
		cmocka_unit_test(a_thread_behind_the_last_one_is_not_unknown),
		cmocka_unit_test(a_deep_stack_is_cut),
		cmocka_unit_test(cycles_and_wild_pointers_end),
		cmocka_unit_test(names_are_copied_and_long_ones_lose_their_beginning),
		cmocka_unit_test(unprintable_characters_are_replaced),
		cmocka_unit_test(lines_follow_from_the_table),
		cmocka_unit_test(offsets_that_are_impossible_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
