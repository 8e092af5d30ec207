/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reports code mappings when they happen. A late dlopen() is visible only here. The kernel
 * writes the side-band records of a dummy perf event to one ring per CPU. It stops for good when
 * the CPU goes offline, also during a suspend: mmap_events_repair() opens the ring again, or
 * enables it. Records are lost when a ring is full. After both, library_set_scan_all() finds the
 * missing mappings.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "abi/types.h"
#include "base/macros.h"

struct mmap_handler {
	/*
	 * A file was mapped as code. Its name is relative to the root of the process and not
	 * unique.
	 */
	void (*on_map)(void *ctx, pid_t pid, const char *name, u64 device, u64 inode);
	/* The executable is mapped; its libraries follow with on_map(). */
	void (*on_exec)(void *ctx, pid_t pid);
	void (*on_fork)(void *ctx, pid_t parent, pid_t child);
	/* The first thread exited. Except in very unusual programs, the process has exited too. */
	void (*on_exit)(void *ctx, pid_t pid);
};

struct mmap_events;

/* Watches `pid` and its children, or every process when `pid` is -1 (needs CAP_PERFMON). */
int mmap_events_new(pid_t pid, const struct mmap_handler *handler, void *ctx,
		    struct mmap_events **ret);
struct mmap_events *mmap_events_free(struct mmap_events *events);
DEFINE_CLEANUP(struct mmap_events, mmap_events_free);

/* The descriptor is readable when there are records. */
int mmap_events_fd(const struct mmap_events *events);

/* Calls the handler for each available record. Returns the number of records. */
int mmap_events_read(struct mmap_events *events);

/*
 * Opens the rings of CPUs that came online, and those that the kernel has stopped. Returns the
 * number of rings that were opened. Call it once a second.
 */
int mmap_events_repair(struct mmap_events *events);
/* Whether the kernel refused to open the ring of a CPU that is online. */
bool mmap_events_is_blind(const struct mmap_events *events);

/* Total number of records that did not fit in a ring. */
u64 mmap_events_lost(const struct mmap_events *events);

/* Decodes one complete record of a ring. Returns the number of lost records that it reports. */
u64 mmap_events_decode(const void *record, size_t size, const struct mmap_handler *handler,
		       void *ctx);
