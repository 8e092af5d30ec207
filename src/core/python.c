/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/python.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "base/macros.h"
#include "core/bytes.h"

/* No structure of an interpreter is larger, except the first three. */
#define MEMBER_MAX 4096
#define STATE_MAX  (1U << 24)

#define VERSION_SHIFT 16

/* The members that a version states itself, and the index of their number in its list. */
struct stated {
	size_t member; /* of struct python_offsets */
	u8 at;
};

#define STATED_MAX   20
#define MEMBER(name) offsetof(struct python_offsets, name)

/* The list begins with this mark, the version, and whether there is no global lock. */
static const char mark[8] = { 'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y' };
#define AT_VERSION	 1
#define AT_FREE_THREADED 2

/* The members that no interpreter states, or that all of a version have in common. */
static const struct row {
	u32 version;
	struct python_offsets constant;
	struct stated stated[STATED_MAX];
} rows[] = {
	{ .version = 0x030b,
	  .constant = { .runtime_interpreters = 40,
			.interpreter_next = 0,
			.interpreter_threads = 16,
			.thread_next = 8,
			.thread_native_id = 160,
			.thread_frame = 56,
			.cframe_frame = 8,
			.frame_previous = 48,
			.frame_code = 32,
			.frame_instruction = 56,
			.frame_owner = 69,
			.code_file = 112,
			.code_name = 128,
			.code_lines = 136,
			.code_first_line = 72,
			.code_instructions = 184,
			.bytes_length = 16,
			.bytes_data = 32,
			.text_state = 32,

			.text_length = 16,
			.text_ascii = 48,
			.text_other = 72 } },
	{ .version = 0x030c,
	  .constant = { .runtime_interpreters = 40,
			.interpreter_next = 0,
			.interpreter_threads = 72,
			.thread_next = 8,
			.thread_native_id = 144,
			.thread_frame = 56,
			.cframe_frame = 0,
			.frame_previous = 8,
			.frame_code = 0,
			.frame_instruction = 56,
			.frame_owner = 70,
			.code_file = 112,
			.code_name = 128,
			.code_lines = 136,
			.code_first_line = 68,
			.code_instructions = 192,
			.bytes_length = 16,
			.bytes_data = 32,
			.text_state = 32,

			.text_length = 16,
			.text_ascii = 40,
			.text_other = 56 } },
	{ .version = 0x030d,
	  .constant = { .cframe_frame = PYTHON_NO_MEMBER, .text_other = 16 },
	  .stated = { { MEMBER(runtime_interpreters), 5 }, { MEMBER(interpreter_next), 8 },
		      { MEMBER(interpreter_threads), 9 },  { MEMBER(thread_next), 21 },
		      { MEMBER(thread_frame), 23 },	   { MEMBER(thread_native_id), 25 },
		      { MEMBER(frame_previous), 29 },	   { MEMBER(frame_code), 30 },
		      { MEMBER(frame_instruction), 31 },   { MEMBER(frame_owner), 33 },
		      { MEMBER(code_file), 35 },	   { MEMBER(code_name), 37 },
		      { MEMBER(code_lines), 38 },	   { MEMBER(code_first_line), 39 },
		      { MEMBER(code_instructions), 43 },   { MEMBER(bytes_length), 65 },
		      { MEMBER(bytes_data), 66 },	   { MEMBER(text_state), 68 },
		      { MEMBER(text_length), 69 },	   { MEMBER(text_ascii), 70 } } },
	{ .version = 0x030e,
	  .constant = { .cframe_frame = PYTHON_NO_MEMBER, .text_other = 16 },
	  .stated = { { MEMBER(runtime_interpreters), 5 }, { MEMBER(interpreter_next), 8 },
		      { MEMBER(interpreter_threads), 9 },  { MEMBER(thread_next), 24 },
		      { MEMBER(thread_frame), 26 },	   { MEMBER(thread_native_id), 28 },
		      { MEMBER(frame_previous), 32 },	   { MEMBER(frame_code), 33 },
		      { MEMBER(frame_instruction), 34 },   { MEMBER(frame_owner), 36 },
		      { MEMBER(code_file), 40 },	   { MEMBER(code_name), 42 },
		      { MEMBER(code_lines), 43 },	   { MEMBER(code_first_line), 44 },
		      { MEMBER(code_instructions), 48 },   { MEMBER(bytes_length), 75 },
		      { MEMBER(bytes_data), 76 },	   { MEMBER(text_state), 78 },
		      { MEMBER(text_length), 79 },	   { MEMBER(text_ascii), 80 } } },
};

/* Whether the members of a frame are in the bytes that are copied. */
static bool frame_is_valid(const struct python_offsets *offsets)
{
	const u32 words[] = { offsets->frame_previous, offsets->frame_code,
			      offsets->frame_instruction };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] % sizeof(u64) || words[i] >= PYTHON_FRAME_BYTES)
			return false;
	return offsets->frame_owner < PYTHON_FRAME_BYTES;
}

bool python_offsets_are_valid(const struct python_offsets *offsets)
{
	u32 members[sizeof(*offsets) / sizeof(u32)];

	memcpy(members, offsets, sizeof(members));
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		u32 max = i * sizeof(u32) <= MEMBER(interpreter_threads) ? STATE_MAX : MEMBER_MAX;

		if (members[i] >= max &&
		    (i * sizeof(u32) != MEMBER(cframe_frame) || members[i] != PYTHON_NO_MEMBER))
			return false;
	}
	return frame_is_valid(offsets);
}

/* Takes the numbers that the interpreter states. One that is too large stays impossible. */
static int take_stated(const struct row *row, u32 version, const u8 *head, u32 size,
		       struct python_offsets *offsets)
{
	if (size < PYTHON_HEAD_BYTES || memcmp(head, mark, sizeof(mark)) ||
	    get_u64(head + AT_VERSION * sizeof(u64)) != version)
		return -EINVAL;
	if (get_u64(head + AT_FREE_THREADED * sizeof(u64)))
		return -ENOTSUP;
	for (size_t i = 0; i < STATED_MAX; i++) {
		u64 stated = get_u64(head + row->stated[i].at * sizeof(u64));
		u32 offset = stated < STATE_MAX ? (u32)stated : STATE_MAX;

		memcpy((u8 *)offsets + row->stated[i].member, &offset, sizeof(offset));
	}
	/* The second header of a text follows the first. */
	offsets->text_other += offsets->text_ascii;
	return 0;
}

int python_offsets_of(u32 version, const u8 *head, u32 size, struct python_offsets *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct python_offsets offsets = rows[i].constant;
		int err = 0;

		if (rows[i].version != version >> VERSION_SHIFT)
			continue;
		if (rows[i].stated[0].at)
			err = take_stated(&rows[i], version, head, size, &offsets);
		if (err == 0 && !python_offsets_are_valid(&offsets))
			err = -EINVAL;
		if (err == 0)
			*ret = offsets;
		return err;
	}
	return -ENOTSUP;
}

int python_stack_read(const struct python_memory *memory, const struct python_offsets *offsets,
		      u64 runtime, u32 native_id, struct python_stack *ret)
{
	struct python_search search = { .native_id = native_id };
	struct python_frame_copy copy = {};
	u64 frame;

	python_search_begin(memory, offsets, runtime, &search);
	for (u32 i = 0; i < PYTHON_THREADS_MAX && python_search_step(memory, offsets, &search); i++)
		;
	if (!search.found)
		return python_search_is_cut(&search) ? -E2BIG : -ESRCH;
	ret->nr = ret->is_cut = 0;
	frame = python_innermost(memory, offsets, search.found);
	for (u32 i = 0; i < PYTHON_STEPS_MAX && frame; i++)
		frame = python_walk_step(memory, offsets, frame, &copy, ret);
	ret->is_cut |= frame != 0;
	return ret->nr ? 0 : -EFAULT;
}

/* The table of lines: entries that begin with a byte whose highest bit is set. */
#define ENTRY_BIT	0x80
#define UNIT_BYTES	2 /* of an instruction */
#define FORM_SHIFT	3
#define FORM_MASK	15
#define UNITS_MASK	7
#define FORM_ONE_LINE	10 /* and two more: the line is 0 to 2 lines further */
#define FORM_NO_COLUMNS 13
#define FORM_LONG	14
#define NUMBER_BITS	6
#define NUMBER_MORE	0x40

/* A number of 6 bits in each byte, the lowest first. */
static u32 take_number(const u8 *table, u32 size, u32 *at)
{
	u32 value = 0, shift = 0;

	while (*at < size) {
		u8 byte = table[(*at)++];

		if (shift < 32)
			value |= (u32)(byte & (NUMBER_MORE - 1)) << shift;
		shift += NUMBER_BITS;
		if (!(byte & NUMBER_MORE))
			break;
	}
	return value;
}

/* The lowest bit is the sign. */
static u32 take_signed(const u8 *table, u32 size, u32 *at)
{
	u32 value = take_number(table, size, at);

	return value & 1 ? 0U - (value >> 1) : value >> 1;
}

static u32 line_delta(u32 form, const u8 *table, u32 size, u32 *at)
{
	if (form == FORM_LONG || form == FORM_NO_COLUMNS)
		return take_signed(table, size, at);
	return form >= FORM_ONE_LINE && form < FORM_NO_COLUMNS ? form - FORM_ONE_LINE : 0;
}

u32 python_complete_entries(const u8 *table, u32 size)
{
	while (size && !(table[size - 1] & ENTRY_BIT))
		size--;
	return size ? size - 1 : 0;
}

u32 python_line(const u8 *table, u32 size, u32 first_line, u32 instruction)
{
	u32 line = first_line, at = 0;
	u64 end = 0;

	while (at < size) {
		u8 head = table[at++];
		u32 form = head >> FORM_SHIFT & FORM_MASK;

		line += line_delta(form, table, size, &at);
		end += ((head & UNITS_MASK) + 1) * UNIT_BYTES;
		if (instruction < end)
			return line;
		/* Columns do not matter. */
		while (at < size && !(table[at] & ENTRY_BIT))
			at++;
	}
	return 0;
}

static u32 character_at(const struct python_text *text, const u8 *bytes, u32 i)
{
	u32 value = 0;

	for (u32 k = 0; k < text->width; k++)
		value |= (u32)bytes[i * text->width + k] << 8 * k;
	return value;
}

/* Control characters, halves of pairs, and numbers that are no character. */
static bool is_printable(u32 c)
{
	return c >= ' ' && (c < 0x7f || c >= 0xa0) && (c < 0xd800 || c > 0xdfff) && c <= 0x10ffff;
}

/* Returns the number of bytes. */
static u32 put_utf8(u32 c, char *ret)
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

void python_text_print(const struct python_text *text, const u8 *bytes, u32 bytes_size, char *ret,
		       u32 size)
{
	u32 used = 0, nr = 0;

	if (text->width == 1 || text->width == 2 || text->width == 4)
		nr = text->length < bytes_size / text->width ? text->length
							     : bytes_size / text->width;
	for (u32 i = 0; i < nr; i++) {
		u32 c = character_at(text, bytes, i);
		char utf8[4];
		u32 length = put_utf8(is_printable(c) ? c : '?', utf8);

		if (used + length >= size)
			break;
		memcpy(ret + used, utf8, length);
		used += length;
	}
	ret[used] = '\0';
}
