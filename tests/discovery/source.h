/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An ELF file in memory, and the names of a runtime, in the form that the parser needs. */
#include <stdlib.h>
#include <string.h>

#include "abi/runtime.h"
#include "collect/elf_symbols.h"

struct image {
	const u8 *data;
	size_t size;
};

static inline ssize_t image_read(void *ctx, void *buffer, size_t size, u64 offset)
{
	const struct image *image = ctx;

	if (offset >= image->size)
		return 0;
	if (size > image->size - offset)
		size = image->size - offset;
	memcpy(buffer, image->data + offset, size);
	return (ssize_t)size;
}

static const char *const call_symbols[CALL_NR] = {
#define CALL(runtime, symbol, ...) [CALL_##runtime##_##symbol] = #symbol,
#include "abi/runtimes.def"
};

static inline int compare_symbols(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes the sorted names of one runtime. */
static inline u32 names_of(enum runtime runtime, const char **names)
{
	u32 nr = 0;

	for (u32 call = 0; call < CALL_NR; call++)
		if (call_rows[call].runtime == runtime)
			names[nr++] = call_symbols[call];
	qsort(names, nr, sizeof(*names), compare_symbols);
	return nr;
}
