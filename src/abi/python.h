/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The stacks of a CPython interpreter, as the BPF programs read them in the memory of a process.
 * The line of a frame is not known yet: it follows from the table of lines of its code object,
 * whose bytes are copied once.
 */
#include "abi/types.h"

/* Deeper stacks are cut: the outermost frames are missing. */
#define PYTHON_FRAMES_MAX  128
/* Frames that are looked at. Some of them are no function of Python. */
#define PYTHON_STEPS_MAX   256
/* Bytes of a frame that are copied: the members that are needed are in them in every version. */
#define PYTHON_FRAME_BYTES 80
#define PYTHON_FRAME_WORDS 16
/* Threads of an interpreter that are looked at. */
#define PYTHON_THREADS_MAX 256
/* Bytes of a name that are kept: the last ones. */
#define PYTHON_NAME_BYTES  96
#define PYTHON_FILE_BYTES  256
/* Bytes of a table of lines in one part, and parts. Lines behind the last part are not known. */
#define PYTHON_TABLE_BYTES 3072
#define PYTHON_PARTS_MAX   8

/* The time that reading stacks takes, so that it is a small part of the time of its thread. */
struct python_budget {
	u64 read_ns; /* that reading took, less what time has paid off */
	u64 paid_ns; /* until then */
};

/* A member that this version does not have. */
#define PYTHON_NO_MEMBER (~0U)

/* Offsets of members in the structures of one version. */
struct python_offsets {
	u32 runtime_interpreters;
	u32 interpreter_next;
	u32 interpreter_threads;
	u32 thread_next;
	u32 thread_native_id;
	u32 thread_frame; /* the address of the innermost frame, or of the struct that has it */
	u32 cframe_frame; /* its member in that struct */
	u32 frame_previous;
	u32 frame_code;
	u32 frame_instruction;
	u32 frame_owner;
	u32 code_file;
	u32 code_name;
	u32 code_lines;
	u32 code_first_line;
	u32 code_instructions;
	u32 bytes_length;
	u32 bytes_data;
	u32 text_state;
	u32 text_length;
	u32 text_ascii; /* the text, if it has only ASCII characters */
	u32 text_other; /* the text otherwise */
};

struct python_frame {
	u64 code;	 /* address of the code object */
	u32 lines;	 /* from the address of its table: memory of a code object is used again */
	u32 instruction; /* bytes from the first instruction */
};

struct python_stack {
	u32 nr;
	u32 is_cut;
	struct python_frame frames[PYTHON_FRAMES_MAX]; /* innermost first */
};

/* A text in the interpreter: characters of 1, 2 or 4 bytes. */
struct python_text {
	u32 width;  /* bytes of a character */
	u32 length; /* characters that were copied */
	u32 is_cut; /* the beginning is missing */
};

struct python_code {
	u32 first_line;
	u32 table_bytes; /* of the whole table */
	u32 part_bytes;	 /* of this part of it */
	u32 pad;
	struct python_text name;
	struct python_text file;
	u8 name_bytes[PYTHON_NAME_BYTES];
	u8 file_bytes[PYTHON_FILE_BYTES];
	u8 table[PYTHON_TABLE_BYTES]; /* one part */
};
_Static_assert(sizeof(struct python_code) ==
		       40 + PYTHON_NAME_BYTES + PYTHON_FILE_BYTES + PYTHON_TABLE_BYTES,
	       "no padding");
