/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Hears of code being mapped the moment it happens: a late dlopen() has no other
 * sign. The kernel writes side-band records of a perf event that counts nothing
 * into one ring for each CPU. CPUs that come online later have none, and records
 * are lost when nobody reads: library_set_scan_all() now and then finds the rest.
 */
#include <stddef.h>
#include <sys/types.h>
#include "abi/types.h"
#include "base/macros.h"

struct mmap_handler {
	/* A file was mapped as code. Its name is of the process's root and says little alone. */
	void (*on_map)(void *ctx, pid_t pid, const char *name, u64 device, u64 inode);
	/* The executable is in place, its libraries come with on_map. */
	void (*on_exec)(void *ctx, pid_t pid);
	void (*on_fork)(void *ctx, pid_t parent, pid_t child);
	/* The first thread ended, and so did the process, but for very odd programs. */
	void (*on_exit)(void *ctx, pid_t pid);
};

struct mmap_events;

/* Of every process when `pid` is -1, which needs CAP_PERFMON; else of `pid` and its children. */
int mmap_events_new(pid_t pid, const struct mmap_handler *handler, void *ctx,
		    struct mmap_events **ret);
struct mmap_events *mmap_events_free(struct mmap_events *events);
DEFINE_CLEANUP(struct mmap_events, mmap_events_free);

/* Readable when there are records. */
int mmap_events_fd(const struct mmap_events *events);

/* Calls the handler for each record there is; returns how many. */
int mmap_events_read(struct mmap_events *events);

/* Records the kernel had no room for, ever. */
u64 mmap_events_lost(const struct mmap_events *events);

/* One whole record as it lies in a ring; returns the records it says were lost. */
u64 mmap_events_decode(const void *record, size_t size, const struct mmap_handler *handler,
		       void *ctx);
