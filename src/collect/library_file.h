/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One file that a process has mapped: is it a runtime, is it the one we know, where are its calls.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/runtime.h"
#include "collect/elf_symbols.h"
#include "collect/maps.h"

/*
 * A traced function. Probes of its entry and of its return go to the same place:
 * the one for the return begins with a breakpoint on entry too.
 */
struct library_probe {
	u64 offset; /* in the file, past what insn_skip_entry() skips */
	u32 call;   /* enum call */
	u32 pad;
};

struct library_probes {
	u32 nr;
	u32 nr_dropped;
	struct library_probe probe[ELF_SYMBOLS_MAX];
};

/*
 * What makes a file the same file to a uprobe. Two containers see a layer that
 * they share under two devices, while the kernel puts both their probes on the
 * one inode below, where every call would then count twice: on overlayfs the
 * device is left out and the time of the last change stands in for it.
 */
struct library_id {
	u64 device;
	u64 inode;
	u64 changed_ns; /* 0 but on overlayfs */
};

/*
 * The runtime a library belongs to by its file name, as in libcudart.so,
 * libcudart.so.12.4 or, out of a Python wheel, libcudart-d0da41ae.so.12.
 * -ENOENT when it is none.
 */
int library_runtime_of(const char *path);

/*
 * Whether a process that has this file mapped takes part in collectives: NCCL or RCCL by
 * its file name, also where none of its functions can be traced, or a shared-memory file
 * of theirs.
 */
bool library_is_collective(const char *path);

/*
 * Opens the very file that is mapped, also when it was deleted or another took
 * its name. Without the right to follow map_files the file is looked up by its
 * name in the process's root; -ESTALE when that is not the mapped one any more.
 */
int library_open_mapped(const char *proc, pid_t pid, const struct mapping *mapping);

/* The main executable of a process. */
int library_open_executable(const char *proc, pid_t pid);

int library_identify(int fd, struct library_id *ret);

/* Where the calls of `runtime` are in the file; none is no error. */
int library_resolve(int fd, enum runtime runtime, bool with_symtab, struct library_probes *ret);
