/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which files carry traced calls, and who uses them. A file is attached when the
 * first process maps it and detached when the last one that did is gone; in
 * between it does not matter how many processes, containers or names it has.
 * Executables count when the CUDA runtime is linked into them.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "abi/runtime.h"
#include "base/macros.h"
#include "collect/library_file.h"

/* Files attached at a time, and processes that use them. */
#define LIBRARY_MAX	    128
#define LIBRARY_PROCESS_MAX 4096

struct library {
	struct library_id id;
	u32 slot; /* below LIBRARY_MAX and its own while it is attached */
	enum runtime runtime;
	bool is_executable;
	char name[256]; /* as one process knows it, for people */
	char path[32];	/* to attach by; good only while attach() runs */
	struct library_probes probes;
};

struct library_ops {
	/* Below 0 when it could not be attached: it is tried again at the next scan. */
	int (*attach)(void *ctx, const struct library *library);
	void (*detach)(void *ctx, const struct library *library);
	/* A process that uses some has a collective library or its buffers mapped, or no more. */
	void (*collective)(void *ctx, int pidfd, bool is_mapped);
};

struct library_counts {
	u32 nr_libraries;
	u32 nr_processes;
	u64 nr_probes;
	u64 nr_examined;	 /* files looked through for calls */
	u64 nr_libraries_excess; /* did not fit, counted at every scan */
	u64 nr_processes_excess;
	u64 nr_unreadable; /* could not be opened or read, or was replaced and out of reach */
	u64 nr_attach_failed;
	u64 nr_symbols_dropped;
};

struct library_set;

/* `proc` is normally "/proc"; `ops` must outlive the set. */
int library_set_new(const char *proc, const struct library_ops *ops, void *ctx,
		    struct library_set **ret);
/* Detaches all. */
struct library_set *library_set_free(struct library_set *set);
DEFINE_CLEANUP(struct library_set, library_set_free);

/*
 * Brings the set up to date with what a process has mapped now: when it mapped
 * something that library_runtime_of() knows, or to be sure.
 * -ESRCH when there is no such process; it is forgotten then.
 */
int library_set_scan_process(struct library_set *set, pid_t pid);

/*
 * A process has just executed a program. Libraries come later, each with an event of
 * its own, so a process that used none, in an executable that is known to have no
 * calls, is not looked at further.
 */
int library_set_exec_process(struct library_set *set, pid_t pid);

/*
 * Buffers of a collective library come without an event: scans the processes again that
 * have none, each after a second and then less and less often. To be called often.
 */
void library_set_look_again(struct library_set *set, u64 now_ns);

/* Brings the set up to date with every process there is; those that are gone are forgotten. */
int library_set_scan_all(struct library_set *set);

/* A new process shares what its parent had mapped, and no event says so. */
int library_set_fork_process(struct library_set *set, pid_t parent, pid_t child);

/* Whether a process is known to use any. */
bool library_set_has_process(const struct library_set *set, pid_t pid);

void library_set_forget_process(struct library_set *set, pid_t pid);

struct library_counts library_set_count(const struct library_set *set);

/* The library in a slot, or NULL. */
const struct library *library_set_at(const struct library_set *set, u32 slot);
