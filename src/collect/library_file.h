/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A file that a process has mapped: its runtime, its identity, and the offsets of its calls. */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/runtime.h"
#include "collect/elf_symbols.h"
#include "collect/maps.h"

/*
 * A traced function. The probes of its entry and of its return have the same offset,
 * because a return probe also starts with a breakpoint at the entry.
 */
struct library_probe {
	u64 offset;	/* in the file, after the bytes that insn_skip_entry() skips */
	u32 call;	/* enum call */
	u32 is_stepped; /* the kernel single-steps the instruction there */
};

struct library_probes {
	u32 nr;
	u32 nr_dropped;
	struct library_probe probe[ELF_SYMBOLS_MAX];
};

/*
 * The identity of a file for uprobes. Two containers see a shared layer under two device
 * numbers, but the kernel puts the probes of both on the same lower inode, where every call
 * would be counted twice. On overlayfs, the time of the last change is therefore used
 * instead of the device.
 */
struct library_id {
	u64 device;
	u64 inode;
	u64 changed_ns; /* 0 except on overlayfs */
};

/*
 * The runtime of a library, from its file name, for example libcudart.so, libcudart.so.12.4
 * or, from a Python wheel, libcudart-d0da41ae.so.12. -ENOENT: not a runtime library.
 */
int library_runtime_of(const char *path);

/*
 * Whether a process that has this file mapped takes part in collectives. True for NCCL and
 * RCCL by file name, also when none of their functions can be traced, and for their
 * shared-memory files.
 */
bool library_is_collective(const char *path);

/*
 * Opens exactly the file that is mapped, also when it was deleted or replaced by another
 * file. Without permission to follow map_files, the file is looked up by its name in the
 * root of the process. -ESTALE: the file with that name is not the mapped file.
 */
int library_open_mapped(const char *proc, pid_t pid, const struct mapping *mapping);

/* Opens the main executable of a process. */
int library_open_executable(const char *proc, pid_t pid);

int library_identify(int fd, struct library_id *ret);

/* The name of a call's function. */
const char *library_symbol(enum call call);

/*
 * Finds the calls of `runtime` in the file. A file without calls is not an error. Adds the bytes
 * that were read to *nr_bytes, also if it fails.
 */
int library_resolve(int fd, enum runtime runtime, bool with_symtab, struct library_probes *ret,
		    u64 *nr_bytes);
