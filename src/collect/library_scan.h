/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the files of other users: which runtime libraries a process has mapped, and where their
 * calls are. It keeps no list of processes. zernel-discover scans for zerneld; tests scan in their
 * own process. What a scan found is trusted by neither of them.
 */
#include "base/macros.h"
#include "collect/library_file.h"
#include "collect/tenant.h"

#define LIBRARY_NAME_BYTES 256
/* Maximum number of files of a process. A file that is mapped several times is found once. */
#define LIBRARY_FOUND_MAX  64

/* A file with traced calls. */
struct library_found {
	struct library_id id;
	struct tenant owner; /* of the process */
	u32 runtime;	     /* enum runtime */
	u32 is_executable;
	char name[LIBRARY_NAME_BYTES]; /* in the process, for messages */
	struct library_probes probes;
};

/* The end of the scan of a process. */
struct library_scanned {
	s32 pid;
	s32 error; /* -ESRCH: the process does not exist */
	u32 has_collective;
	u32 is_partial; /* at least one file could not be read */
	u32 nr_examined;
	u32 nr_unreadable;
	u64 nr_bytes; /* that were read of these files */
};

enum library_scan_kind {
	LIBRARY_SCAN_MAPS,
	/*
	 * After an exec: libraries are mapped later, each with its own event. Only the executable
	 * is looked at if it is known to have no traced calls.
	 */
	LIBRARY_SCAN_EXEC,
	LIBRARY_SCAN_KIND_NR,
};

struct library_scan_handler {
	/* `fd` is closed by the scanner. */
	void (*on_found)(void *ctx, const struct library_found *found, int fd);
	void (*on_scanned)(void *ctx, const struct library_scanned *scanned);
};

struct library_scanner;

/* `proc` is normally "/proc"; `handler` must outlive the scanner. */
int library_scanner_new(const char *proc, const struct library_scan_handler *handler, void *ctx,
			struct library_scanner **ret);
struct library_scanner *library_scanner_free(struct library_scanner *scanner);
DEFINE_CLEANUP(struct library_scanner, library_scanner_free);

/* Calls on_found() for each file, and then on_scanned() once. Returns its error. */
int library_scan(struct library_scanner *scanner, pid_t pid, enum library_scan_kind kind);

/* Calls `fn` with each process. */
int library_scan_list(const struct library_scanner *scanner, void (*fn)(void *ctx, pid_t pid),
		      void *ctx);
