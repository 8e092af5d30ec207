/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared only by library.c and library_attach.c. */
#include "collect/library_uses.h"

struct process {
	pid_t pid;
	struct tenant owner;
	struct uses uses;
	bool has_collective; /* the last value passed to ops->collective() */
	bool torch_is_known; /* ops->torch() need not be called: library_set_know_torch() */
	bool holds_gpu;	     /* the last value of ops->holds_gpu() */
	bool wants_usage;    /* library_set_want_usage() */
	u64 look_ns;	     /* time of the next scan for a collective library or a GPU */
	u64 look_after_ns;
};

/* The scan that is under way. */
struct scan {
	pid_t pid;
	int pidfd; /* of the caller */
	struct tenant owner;
	bool has_owner; /* it and has_room are known */
	bool has_room;	/* in the list of processes */
	bool is_excess;
	bool is_partial; /* at least one file could not be added */
	struct uses uses;
};

struct library_set {
	struct library_scanner *scanner;
	struct scan scan;
	const struct library_ops *ops;
	void *ctx;
	u32 max_fds; /* of all libraries */
	struct library *library[LIBRARY_MAX];
	u32 nr_users[LIBRARY_MAX];
	u32 nr_bare[LIBRARY_MAX];    /* users whose driver is not probed */
	u32 nr_watched[LIBRARY_MAX]; /* users of which library_set_want_usage() was told */
	struct uses drivers;	     /* the libraries of the driver */
	struct process *processes;   /* LIBRARY_PROCESS_MAX, sorted by pid */
	u32 nr_processes;
	struct library_counts counts;
};

/* Adds a new file, and returns its slot. -ENOENT: there is no free slot, which was counted. */
int library_add(struct library_set *set, int fd, const struct library *found);
/* The operation that is under way for a library has ended. */
void library_finish(struct library_set *set, struct library *library, int err);
/*
 * Attaches the new libraries. Call it when the process that was scanned counts as their user: the
 * launches of the CUDA runtime are attached at once if that process has no driver.
 */
void library_attach_new(struct library_set *set);
/* In library.c: no process uses the library any more, because it could not be attached. */
void library_forget_users(struct library_set *set, u32 slot);
/* Attaches or detaches the extra calls, depending on the processes that use the libraries. */
void library_change_extras(struct library_set *set);
/* Adds the uses of a process to the counts, or removes them with a `sign` of -1. */
void library_count_uses(struct library_set *set, const struct uses *uses, int sign);
/* The same for a process whose allocator is watched. */
void library_count_watch(struct library_set *set, const struct uses *uses, int sign);
/* Detaches a library at once, in any state. */
void library_remove(struct library_set *set, struct library *library);
