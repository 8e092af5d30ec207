/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds functions by name in an ELF file that nobody vouches for. The file is
 * read in small pieces through a callback and never mapped: whoever owns it can
 * cut it short at any moment, and a read of a mapping would then kill the reader.
 * Every number is copied before it is checked, so a file that changes meanwhile
 * gives wrong offsets at worst.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/types.h"

/* Functions that one file can yield; a name may have several versions. */
#define ELF_SYMBOLS_MAX 256
/* Names of C++ functions carry the types of their arguments. */
#define ELF_NAME_BYTES	160

struct elf_source {
	/* As pread(): at most `size` bytes, fewer at the end of the file, or a negative errno. */
	ssize_t (*read)(void *ctx, void *buffer, size_t size, u64 offset);
	void *ctx;
};

struct elf_query {
	const char *const *names; /* sorted as strcmp() does, each with its end in ELF_NAME_BYTES */
	u32 nr_names;
	bool with_symtab; /* also functions that are not exported */
};

struct elf_symbol {
	u64 offset; /* of the function in the file */
	u64 size;   /* 0 when the file does not say */
	u32 name;   /* index into the query's names */
	u32 pad;
};

struct elf_symbols {
	u32 nr;
	u32 nr_dropped; /* table entries not looked at and functions that did not fit */
	struct elf_symbol symbol[ELF_SYMBOLS_MAX];
};

/*
 * Functions of the query that the file defines, each (name, offset) once. Symbol
 * versions are ignored. -ENOEXEC when it is no program or library for this
 * machine, the error of the source when it cannot be read; what is malformed
 * further in yields fewer symbols.
 */
int elf_find_symbols(const struct elf_source *source, const struct elf_query *query,
		     struct elf_symbols *ret);
