/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/python_place.h"
#include <string.h>

static void text_of(const struct python_text *text, const u8 *bytes, u32 room, char *ret, u32 size)
{
	static const char ellipsis[] = "…";
	u32 used = text->is_cut ? sizeof(ellipsis) - 1 : 0;

	memcpy(ret, ellipsis, used);
	python_text_print(text, bytes, room, ret + used, size - used);
}

/* `code` has the first part, and is overwritten. */
static u32 line_of(python_part_fn read, void *ctx, const struct python_frame *frame,
		   struct python_code *code, u8 *table)
{
	u32 size = code->table_bytes, first_line = code->first_line, used = 0;

	for (u32 i = 0; i < PYTHON_PARTS_MAX && used < size; i++) {
		u32 bytes;

		if (i > 0 && read(ctx, frame, i, code) < 0)
			break;
		/* The process may have changed its table between two parts. */
		bytes = code->part_bytes < PYTHON_TABLE_BYTES ? code->part_bytes
							      : PYTHON_TABLE_BYTES;
		memcpy(table + used, code->table, bytes);
		used += bytes;
		if (bytes < PYTHON_TABLE_BYTES)
			break;
	}
	if (used < size)
		used = python_complete_entries(table, used);
	return python_line(table, used, first_line, frame->instruction);
}

int python_place(python_part_fn read, void *ctx, const struct python_frame *frame,
		 struct python_place *ret)
{
	u8 table[PYTHON_PARTS_MAX * PYTHON_TABLE_BYTES];
	struct python_code code;
	int err = read(ctx, frame, 0, &code);

	if (err < 0)
		return err;
	text_of(&code.name, code.name_bytes, sizeof(code.name_bytes), ret->function,
		sizeof(ret->function));
	text_of(&code.file, code.file_bytes, sizeof(code.file_bytes), ret->file, sizeof(ret->file));
	ret->line = line_of(read, ctx, frame, &code, table);
	return 0;
}
