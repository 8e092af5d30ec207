/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The truth log: what really happened in a lab process, written by the process
 * itself, for holding against what Zernel inferred from outside.
 *
 * One file a process and writer (`<dir>/<writer>.<pid>.truth`): a header, then
 * records of one size, in the byte order of the machine. The file is mapped, a
 * slot is claimed by an atomic add, and a record is published by storing its kind
 * last, so kill -9 at any instant leaves only whole records, with empty slots
 * among them at worst. Times are CLOCK_MONOTONIC ns; the header holds what to add
 * to get CLOCK_BOOTTIME.
 *
 * What holds for a run that ended by itself, and `truth check` checks:
 *  - no file is cut off and no record was dropped;
 *  - the TRUTH_PHASE spans of a thread tile its TRUTH_THREAD span. Each begins
 *    and ends at the call boundary DESIGN.md names; an optimizer step is cut 5 ms
 *    of wall time after its sync, from where on the phase is Unknown. Getting a
 *    batch that is there already is no wait and so no DataLoading;
 *  - a process is in the phase of its launcher, or of its only thread;
 *  - every TRUTH_LAUNCH has one TRUTH_BUSY of the same process, device and
 *    sequence, with the same work on the same stream, that starts no earlier;
 *  - what a launcher or loader did (TRUTH_IDLE, TRUTH_LOAD) takes no longer than it lasted;
 *  - steps count up from 0, each starting where the one before ended;
 *  - a request completes no earlier than its first token.
 */
#include <stdbool.h>

#include "abi/types.h"

#define TRUTH_MAGIC   "ZNTRUTH"
#define TRUTH_VERSION 1

enum truth_kind {
	TRUTH_NONE = 0, /* not written (yet) */
	TRUTH_THREAD,	/* life of a thread; sub: enum truth_role */
	TRUTH_PHASE,	/* a thread was in phase sub (enum phase) */
	TRUTH_STEP,	/* one training step; a: step number, b: rank */
	TRUTH_LOAD,	/* what a loader did; sub: enum truth_load; a: batch | rank << 32, b: ns of
			   it on a CPU, c: ns able to run but not running */
	TRUTH_REQUEST,	/* serving: arrival to first token; a: request, b: completion time */
	TRUTH_CHECKPOINT, /* a: step number, b: bytes */
	TRUTH_BUSY,	  /* device busy; sub: enum truth_work; a: device, b: stream, c: sequence */
	TRUTH_ALLOC,	  /* sub: allocation API; a: device, b: pointer or handle, c: bytes */
	TRUTH_FREE,	  /* same as the allocation it ends */
	TRUTH_COLLECTIVE, /* entry to end; sub: op; a: rank | nranks << 32, b: bytes, c: comm */
	TRUTH_SYNC,	  /* a sync call, entry to return; a: device, b: stream (0: whole device) */
	TRUTH_LAUNCH,	  /* a launch, copy or collective call, entry to return; rest as BUSY */
	TRUTH_IDLE, /* a launcher in a phase (sub) without work for its device; a, b: b, c of LOAD
		     */
	TRUTH_NR,
};

enum truth_role {
	TRUTH_ROLE_OTHER = 0,
	TRUTH_ROLE_LAUNCHER,
	TRUTH_ROLE_SYNC_WAITER,
	TRUTH_ROLE_LOADER,
	TRUTH_ROLE_COLLECTIVE_HELPER,
};

enum truth_load {
	TRUTH_LOAD_IO = 0,  /* waiting for storage */
	TRUTH_LOAD_CPU,	    /* preprocessing */
	TRUTH_LOAD_BLOCKED, /* the prefetch queue is full */
};

enum truth_work {
	TRUTH_WORK_KERNEL = 0,
	TRUTH_WORK_COPY,
	TRUTH_WORK_COLLECTIVE,
	TRUTH_WORK_MEMSET,
};

struct truth_header {
	char magic[8];
	u32 version;
	u32 record_size;
	u32 pid;
	u32 capacity; /* records the file has room for */
	u64 boottime_minus_monotonic_ns;
	u64 start_ns;
	u64 nr_dropped; /* records that did not fit */
	char writer[16];
};

struct truth_record {
	u64 start_ns;
	u64 end_ns;
	u64 a;
	u64 b;
	u64 c;
	u32 tid;
	u16 sub;
	u16 kind; /* stored last, with release order */
};

_Static_assert(sizeof(struct truth_header) == 64, "file format");
_Static_assert(sizeof(struct truth_record) == 48, "file format");

struct truth;

/*
 * Opens the log of this process for `writer` in directory `dir`, which is made if
 * need be, with room for `capacity` records (the file is sparse). A forked child
 * needs a log of its own: through its parent's it logs nothing. 0, or a negative
 * errno.
 */
int truth_open(const char *dir, const char *writer, u32 capacity, struct truth **ret);
struct truth *truth_free(struct truth *truth); /* NULL is fine; always returns NULL */

/* Thread-safe, lock-free, never fails: what does not fit is counted. NULL truth logs nothing. */
void truth_log(struct truth *truth, enum truth_kind kind, u16 sub, u64 start_ns, u64 end_ns, u64 a,
	       u64 b, u64 c);

u64 truth_now_ns(void);

/* All published records of a file, sorted by start time. A cut-off file is fine. */
struct truth_file {
	struct truth_header header;
	struct truth_record *records;
	u64 nr_records;
	bool cut; /* the file is shorter than its capacity says */
};

int truth_read(const char *path, struct truth_file *ret);
void truth_file_done(struct truth_file *file);
