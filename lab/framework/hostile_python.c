/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A process that looks like a CPython interpreter of 3.13 and whose memory is hostile, for tests of
 * the programs that read it: `hostile-python KIND`. The kinds are in the table below. It sleeps
 * until a signal ends it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "abi/types.h"
#include "base/macros.h"

#define VERSION	     0x030d05f0
#define HEAD_NUMBERS 128
#define FRAMES	     100000

struct text {
	u32 state;
	u32 pad;
	u64 length;
	char data[16];
};

struct bytes {
	u64 length;
	u8 data[8];
};

struct code {
	u64 file, name, lines; /* addresses */
	u32 first_line;
	u32 pad;
	u8 instructions[16];
};

struct frame {
	u64 previous, code, instruction;
	u64 owner;
};

struct thread {
	u64 next, frame, native_id;
};

struct interpreter {
	u64 next, threads;
};

struct runtime {
	u64 head[HEAD_NUMBERS];
	u64 interpreters;
};

/* Where the debug offsets of 3.13 have the offset of each member. */
struct runtime _PyRuntime = {
	.head = {
		[0] = 0x7970677562656478, /* "xdebugpy" */
		[1] = VERSION,
		[5] = offsetof(struct runtime, interpreters),
		[8] = offsetof(struct interpreter, next),
		[9] = offsetof(struct interpreter, threads),
		[21] = offsetof(struct thread, next),
		[23] = offsetof(struct thread, frame),
		[25] = offsetof(struct thread, native_id),
		[29] = offsetof(struct frame, previous),
		[30] = offsetof(struct frame, code),
		[31] = offsetof(struct frame, instruction),
		[33] = offsetof(struct frame, owner),
		[35] = offsetof(struct code, file),
		[37] = offsetof(struct code, name),
		[38] = offsetof(struct code, lines),
		[39] = offsetof(struct code, first_line),
		[43] = offsetof(struct code, instructions),
		[65] = offsetof(struct bytes, length),
		[66] = offsetof(struct bytes, data),
		[68] = offsetof(struct text, state),
		[69] = offsetof(struct text, length),
		[70] = offsetof(struct text, data),
	},
};

/* Compact, ASCII, one byte for each character. */
#define STATE ((1 | 8 | 16) << 2)

static struct text name = { .state = STATE, .length = 4, .data = "fake" };
static struct text file = { .state = STATE, .length = 7, .data = "fake.py" };
/* One entry: eight instructions in the first line. */
static struct bytes lines = { .length = 1, .data = { 0xd7 } };
static struct code code = { .first_line = 7 };
static struct frame frames[FRAMES];
static struct thread thread;
static struct interpreter interpreter;

static u64 address(const void *at)
{
	return (u64)(uintptr_t)at;
}

/* Not mapped, in the kernel, at the ends of the address space, and not aligned. */
static const u64 wild[] = { 8, 0xdeadbeef000, 0x7ffffffff000, 0xffffffff81000000, ~0ULL, 0xfff1 };

static u64 wild_at(u64 i)
{
	return wild[i % ARRAY_SIZE(wild)];
}

/* A valid stack of so many frames, which every kind begins with. */
static void build(u32 depth)
{
	code.file = address(&file);
	code.name = address(&name);
	code.lines = address(&lines);
	for (u32 i = 0; i < depth; i++)
		frames[i] = (struct frame){ .previous = i + 1 < depth ? address(&frames[i + 1]) : 0,
					    .code = address(&code),
					    .instruction = address(code.instructions) };
	thread.native_id = (u64)gettid();
	thread.frame = address(&frames[0]);
	interpreter.threads = address(&thread);
	_PyRuntime.interpreters = address(&interpreter);
}

static void plain(void)
{
	build(3);
}

static void cycle(void)
{
	build(3);
	frames[2].previous = address(&frames[0]);
}

/* A cycle of frames that are no functions. */
static void entries(void)
{
	cycle();
	for (u32 i = 0; i < 3; i++)
		frames[i].owner = 3;
}

static void deep(void)
{
	build(FRAMES);
}

/* A cycle of threads, of which none is the one that is looked for. */
static void threads(void)
{
	build(3);
	thread.native_id = 1;
	thread.next = address(&thread);
}

static void interpreters(void)
{
	build(3);
	interpreter.threads = 0;
	interpreter.next = address(&interpreter);
}

static void wild_frames(void)
{
	build(64);
	for (u32 i = 0; i < 64; i++)
		frames[i].code = wild_at(i);
	frames[63].previous = wild_at(3); /* not in the shadow memory of a sanitizer */
}

/* The frames are valid, what their code names is not. */
static void wild_names(void)
{
	build(3);
	code.name = wild_at(1);
	code.file = wild_at(3);
}

static void lengths(void)
{
	build(3);
	name.length = 1ULL << 62;
	file.length = ~0ULL;
	lines.length = ~0ULL;
}

/* Never waits, so that a reader sees all states and those between them. */
static void *change(void *arg)
{
	volatile struct frame *changed = frames;
	volatile struct thread *state = &thread;
	volatile struct code *of = &code;
	volatile struct text *text = &name;
	u64 id = thread.native_id;

	for (u64 i = 0;; i++) {
		changed[i % 3].previous = i % 5 ? address(&frames[i % 7]) : wild_at(i);
		changed[i % 3].code = i % 4 ? address(&code) : wild_at(i);
		changed[i % 3].owner = i % 11 == 0 ? 3 : 0;
		of->name = i % 3 ? address(&name) : wild_at(i);
		of->lines = i % 6 ? address(&lines) : wild_at(i);
		text->length = i % 2 ? 4 : ~0ULL - i;
		text->state = (u32)(i % 8 ? STATE : i);
		state->frame = i % 13 ? address(&frames[i % 3]) : wild_at(i);
		state->native_id = i % 17 ? id : i;
	}
	return arg;
}

static void torn(void)
{
	pthread_t other;

	build(16);
	if (pthread_create(&other, NULL, change, NULL))
		exit(1);
}

static const struct kind {
	const char *name;
	void (*build)(void);
} kinds[] = {
	{ "plain", plain },	   { "cycle", cycle },	    { "entries", entries },
	{ "deep", deep },	   { "threads", threads },  { "interpreters", interpreters },
	{ "frames", wild_frames }, { "names", wild_names }, { "lengths", lengths },
	{ "torn", torn },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		kinds[i].build();
		puts("ready");
		fflush(stdout);
		for (;;)
			pause();
	}
	fputs("Usage: hostile-python KIND\n", stderr);
	return 2;
}
