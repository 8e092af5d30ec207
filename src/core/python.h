/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the stack of a thread in the memory of a CPython interpreter that runs on meanwhile. Every
 * address and every number in that memory is chosen by the process. A wrong one leads to a failed
 * read or to wrong text, never to more work: each step reads a fixed number of members, and the
 * callers bound the steps. Compiled for BPF and user space, which differ in how they copy memory.
 */
#include <stdbool.h>
#include "abi/python.h"

#ifdef __bpf__
/* The memory of the current task. A page that is not in memory is not read. */
struct python_memory {
	u64 none;
};
#define python_copy(memory, to, size, from)                                                        \
	((void)(memory), bpf_probe_read_user(to, size, (const void *)(from)))
#else
struct python_memory {
	/* Copies exactly `size` bytes, or returns a negative errno. */
	long (*read)(void *ctx, void *to, u32 size, u64 from);
	void *ctx;
};
#define python_copy(memory, to, size, from) ((memory)->read((memory)->ctx, to, size, from))
#endif

/* Frames of this owner, or of a later one, are entries into the interpreter and not functions. */
#define PYTHON_OWNER_NO_FUNCTION 3
/* A reference in a frame has marks in its lowest bits. */
#define PYTHON_MARKS		 3ULL

/* The state of a text: the width of its characters, and flags. */
#define PYTHON_STATE_SHIFT 2
#define PYTHON_KIND_MASK   7
#define PYTHON_IS_COMPACT  8
#define PYTHON_IS_ASCII	   16

static inline u64 python_pointer(const struct python_memory *memory, u64 from)
{
	u64 pointer = 0;

	return python_copy(memory, &pointer, sizeof(pointer), from) ? 0 : pointer;
}

/* The search for the state of a thread. */
struct python_search {
	u64 interpreter; /* 0: all were searched */
	u64 thread;	 /* the state that is looked at next; 0: the end of its list */
	u64 found;
	u64 native_id;
};

/* A process can have several interpreters, each with its threads. */
static inline void python_search_in(const struct python_memory *memory,
				    const struct python_offsets *offsets, u64 interpreter,
				    struct python_search *search)
{
	search->interpreter = interpreter;
	search->thread =
		interpreter ? python_pointer(memory, interpreter + offsets->interpreter_threads)
			    : 0;
}

static inline void python_search_begin(const struct python_memory *memory,
				       const struct python_offsets *offsets, u64 runtime,
				       struct python_search *search)
{
	python_search_in(memory, offsets,
			 python_pointer(memory, runtime + offsets->runtime_interpreters), search);
}

static inline bool python_is_thread(const struct python_memory *memory,
				    const struct python_offsets *offsets, u64 thread, u64 native_id)
{
	return thread && python_pointer(memory, thread + offsets->thread_native_id) == native_id;
}

/* Returns whether the search goes on. */
static inline bool python_search_step(const struct python_memory *memory,
				      const struct python_offsets *offsets,
				      struct python_search *search)
{
	if (!search->interpreter)
		return false;
	if (python_is_thread(memory, offsets, search->thread, search->native_id)) {
		search->found = search->thread;
		return false;
	}
	if (search->thread)
		search->thread = python_pointer(memory, search->thread + offsets->thread_next);
	else
		python_search_in(
			memory, offsets,
			python_pointer(memory, search->interpreter + offsets->interpreter_next),
			search);
	return true;
}

/* Whether a search with a bounded number of steps ended before all threads were looked at. */
static inline bool python_search_is_cut(const struct python_search *search)
{
	return !search->found && search->interpreter;
}

/* The innermost frame of a thread; 0: it runs no function. */
static inline u64 python_innermost(const struct python_memory *memory,
				   const struct python_offsets *offsets, u64 thread)
{
	u64 frame = python_pointer(memory, thread + offsets->thread_frame);

	if (offsets->cframe_frame == PYTHON_NO_MEMBER || !frame)
		return frame;
	return python_pointer(memory, frame + offsets->cframe_frame);
}

/*
 * The first bytes of a frame. All members that are needed are copied at once, because a copy costs
 * more than all else that is done with a frame.
 */
struct python_frame_copy {
	u64 words[PYTHON_FRAME_WORDS]; /* a power of two; those behind the copied bytes are 0 */
};

static inline u64 python_frame_word(const struct python_frame_copy *copy, u32 offset)
{
	return copy->words[(offset / sizeof(u64)) & (PYTHON_FRAME_WORDS - 1)];
}

static inline u8 python_frame_byte(const struct python_frame_copy *copy, u32 offset)
{
	return (u8)(python_frame_word(copy, offset) >> offset % sizeof(u64) * 8);
}

/*
 * Whether the frame is that of a function, and its code, table and instruction. The table is 0 if
 * the code cannot be read, for example because its page is not in memory.
 */
static inline bool python_frame_read(const struct python_memory *memory,
				     const struct python_offsets *offsets,
				     const struct python_frame_copy *copy, struct python_frame *ret)
{
	u64 code = python_frame_word(copy, offsets->frame_code) & ~PYTHON_MARKS;

	if (python_frame_byte(copy, offsets->frame_owner) >= PYTHON_OWNER_NO_FUNCTION || !code)
		return false;
	ret->code = code;
	ret->lines = (u32)(python_pointer(memory, code + offsets->code_lines) >> 4);
	ret->instruction = (u32)(python_frame_word(copy, offsets->frame_instruction) - code -
				 offsets->code_instructions);
	return true;
}

/* Reads one frame. Returns the address of the one that called it, or 0. */
static inline u64 python_walk_step(const struct python_memory *memory,
				   const struct python_offsets *offsets, u64 frame,
				   struct python_frame_copy *copy, struct python_stack *stack)
{
	struct python_frame read;
	u64 nr = stack->nr;

	if (!frame)
		return 0;
	if (nr >= PYTHON_FRAMES_MAX) {
		stack->is_cut = 1;
		return 0;
	}
	if (python_copy(memory, copy->words, PYTHON_FRAME_BYTES, frame)) {
		stack->is_cut = 1;
		return 0;
	}
	if (python_frame_read(memory, offsets, copy, &read)) {
		/* Keeps the compiler from masking a different value than the verifier sees. */
		asm volatile("" : "+r"(nr));
		stack->frames[nr & (PYTHON_FRAMES_MAX - 1)] = read;
		stack->nr = (u32)nr + 1;
	}
	return python_frame_word(copy, offsets->frame_previous);
}

static inline u32 python_text_width(u32 state)
{
	u32 width = state & PYTHON_KIND_MASK;

	return (state & PYTHON_IS_COMPACT) && (width == 1 || width == 2 || width == 4) ? width : 0;
}

/* Copies the last characters of a text, at most `room` bytes. */
static inline bool python_text_read(const struct python_memory *memory,
				    const struct python_offsets *offsets, u64 text,
				    struct python_text *ret, u8 *bytes, u32 room)
{
	u64 length = 0, data, size;
	u32 state = 0, width;

	if (!text || python_copy(memory, &state, sizeof(state), text + offsets->text_state) ||
	    python_copy(memory, &length, sizeof(length), text + offsets->text_length))
		return false;
	state >>= PYTHON_STATE_SHIFT;
	width = python_text_width(state);
	if (!width || !length)
		return false;
	data = text + (state & PYTHON_IS_ASCII ? offsets->text_ascii : offsets->text_other);
	ret->width = width;
	ret->is_cut = length > room / width;
	ret->length = ret->is_cut ? room / width : (u32)length;
	size = (u64)ret->length * width;
	data += (length - ret->length) * width;
	asm volatile("" : "+r"(size));
	if (size > room)
		return false;
	return !python_copy(memory, bytes, size, data);
}

/* Copies one part of the table of lines. */
static inline bool python_table_read(const struct python_memory *memory,
				     const struct python_offsets *offsets, u64 code, u32 part,
				     struct python_code *ret)
{
	u64 table = python_pointer(memory, code + offsets->code_lines), length = 0;
	u64 from = (u64)part * PYTHON_TABLE_BYTES, size;

	if (!table || python_copy(memory, &length, sizeof(length), table + offsets->bytes_length) ||
	    from >= length)
		return false;
	ret->table_bytes = length > ~0U ? ~0U : (u32)length;
	size = length - from;
	if (size > PYTHON_TABLE_BYTES)
		size = PYTHON_TABLE_BYTES;
	asm volatile("" : "+r"(size));
	if (size > PYTHON_TABLE_BYTES)
		return false;
	ret->part_bytes = (u32)size;
	return !python_copy(memory, ret->table, size, table + offsets->bytes_data + from);
}

/* Reads the names of a code object and one part of its table. */
static inline bool python_code_read(const struct python_memory *memory,
				    const struct python_offsets *offsets, u64 code, u32 part,
				    struct python_code *ret)
{
	u64 name = python_pointer(memory, code + offsets->code_name);
	u64 file = python_pointer(memory, code + offsets->code_file);

	return !python_copy(memory, &ret->first_line, sizeof(ret->first_line),
			    code + offsets->code_first_line) &&
	       python_text_read(memory, offsets, name, &ret->name, ret->name_bytes,
				sizeof(ret->name_bytes)) &&
	       python_text_read(memory, offsets, file, &ret->file, ret->file_bytes,
				sizeof(ret->file_bytes)) &&
	       python_table_read(memory, offsets, code, part, ret);
}

/* User space only. */

/* Bytes at the head of the runtime that are enough for every version. */
#define PYTHON_HEAD_BYTES 1024

/*
 * The offsets of a version, for example 0x030d05f0: from 3.13 on, the interpreter states them in
 * the first bytes of its runtime. -ENOTSUP: an unknown version, or one without a global lock.
 * -EINVAL: impossible offsets.
 */
int python_offsets_of(u32 version, const u8 *head, u32 size, struct python_offsets *ret);
bool python_offsets_are_valid(const struct python_offsets *offsets);

/*
 * -ESRCH: the interpreter does not know the thread. -E2BIG: it has more threads than are looked at,
 * and the thread is not one of the first. -EFAULT: its stack could not be read.
 */
int python_stack_read(const struct python_memory *memory, const struct python_offsets *offsets,
		      u64 runtime, u32 native_id, struct python_stack *ret);

/* The size of a table that was cut, without its last entry, which may not be complete. */
u32 python_complete_entries(const u8 *table, u32 size);

/*
 * The line of an instruction, from the table of a code object. An instruction without a line, for
 * example one that the compiler put before the first line, has the line before it. 0: it is behind
 * the end of the table.
 */
u32 python_line(const u8 *table, u32 size, u32 first_line, u32 instruction);

/* Writes printable UTF-8 with a zero at its end. Characters that are not printable become "?". */
void python_text_print(const struct python_text *text, const u8 *bytes, u32 bytes_size, char *ret,
		       u32 size);
