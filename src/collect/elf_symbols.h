/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds functions and variables by name in an untrusted ELF file. The file is read in small parts
 * through a callback and is never mapped: its owner can truncate it at any time, and a read of the
 * mapping would then kill the reader. Every number is copied before it is checked, so a
 * file that changes during the search can only cause wrong offsets.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/types.h"

/* Maximum number of functions found in one file; a name can have several versions. */
#define ELF_SYMBOLS_MAX 256
/* Names of C++ functions include the types of their arguments. */
#define ELF_NAME_BYTES	160

struct elf_source {
	/* Like pread(): at most `size` bytes, fewer at the end of the file, or a negative errno. */
	ssize_t (*read)(void *ctx, void *buffer, size_t size, u64 offset);
	void *ctx;
};

struct elf_query {
	const char *const *names; /* sorted by strcmp(), at most ELF_NAME_BYTES with zero */
	u32 nr_names;
	bool with_symtab; /* also functions that are not exported */
	bool of_data;	  /* variables instead of functions */
};

struct elf_symbol {
	u64 offset; /* of the function in the file */
	u64 size;   /* 0 when the file does not have it */
	u32 name;   /* index into the query's names */
	u32 pad;
};

struct elf_symbols {
	u32 nr;
	u32 nr_dropped; /* table entries that were not read, and functions that did not fit */
	struct elf_symbol symbol[ELF_SYMBOLS_MAX];
};

/*
 * Finds the functions of the query that the file defines, each (name, offset) once. Symbol
 * versions are ignored. -ENOEXEC: the file is not a program or library for this machine. An
 * error of the source is returned. Malformed tables lead to fewer symbols, not to an error.
 */
int elf_find_symbols(const struct elf_source *source, const struct elf_query *query,
		     struct elf_symbols *ret);

/* The offset of a section in the file. -ENOENT: there is none, or it is not in the file. */
int elf_find_section(const struct elf_source *source, const char *name, u64 *ret);
