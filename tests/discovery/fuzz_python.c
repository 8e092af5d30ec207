/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Arbitrary bytes as the head of a runtime, as the memory of an interpreter, as a table of lines
 * and as a name. The work is bounded, and what is printed is printable.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "core/bytes.h"
#include "core/python.h"

/* Each step reads a few members. */
#define READS_MAX (8 * (PYTHON_THREADS_MAX + PYTHON_STEPS_MAX) + 16)

struct memory {
	const uint8_t *data;
	size_t size;
	u32 nr_reads;
};

/* The bytes repeat, so that most addresses lead to others. */
static long read_memory(void *ctx, void *to, u32 size, u64 from)
{
	struct memory *memory = ctx;

	memory->nr_reads++;
	if (!memory->size || from % 7 == 6)
		return -EFAULT;
	/* A division for each byte would take most of the time. */
	for (u32 done = 0; done < size;) {
		size_t at = (from + done) % memory->size, part = memory->size - at;

		if (part > size - done)
			part = size - done;
		memcpy((u8 *)to + done, memory->data + at, part);
		done += (u32)part;
	}
	return 0;
}

static void check_text(const struct python_text *text, const u8 *bytes, u32 size)
{
	char printed[2 * PYTHON_FILE_BYTES];

	python_text_print(text, bytes, size, printed, sizeof(printed));
	REQUIRE(memchr(printed, '\0', sizeof(printed)));
	for (const char *c = printed; *c; c++)
		REQUIRE((u8)*c >= ' ' && *c != 0x7f);
}

static void check_interpreter(const struct python_offsets *offsets, const uint8_t *data,
			      size_t size)
{
	static struct python_stack stack;
	static struct python_code code;
	struct memory bytes = { .data = data, .size = size };
	struct python_memory memory = { .read = read_memory, .ctx = &bytes };
	u64 runtime = size >= sizeof(u64) ? get_u64(data) : 0;

	if (python_stack_read(&memory, offsets, runtime, data[0], &stack) == 0)
		REQUIRE(stack.nr > 0 && stack.nr <= PYTHON_FRAMES_MAX);
	REQUIRE(bytes.nr_reads <= READS_MAX);
	if (python_code_read(&memory, offsets, runtime, data[0] % PYTHON_PARTS_MAX, &code)) {
		check_text(&code.name, code.name_bytes, sizeof(code.name_bytes));
		check_text(&code.file, code.file_bytes, sizeof(code.file_bytes));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u32 versions[] = { 0x030b02f0, 0x030c01f0, 0x030d05f0, 0x030e08f0 };
	struct python_offsets offsets;
	struct python_text text;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (python_offsets_of(versions[i], data, (u32)size, &offsets) == 0) {
			REQUIRE(python_offsets_are_valid(&offsets));
			check_interpreter(&offsets, data, size);
		}
	for (u32 instruction = 0; instruction < 64; instruction += 6)
		(void)python_line(data, (u32)size, data[0], instruction);
	text = (struct python_text){ .width = data[0] % 6, .length = (u32)size };
	check_text(&text, data, (u32)size);
	return 0;
}
