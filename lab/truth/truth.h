/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The truth log: what really happened in a lab process, written by the process
 * itself. Tests compare it with what Zernel inferred from outside.
 *
 * There is one file for each process and writer (`<dir>/<writer>.<pid>.truth`): a
 * header, then records of one size, in the byte order of the machine. The file is
 * mapped. A writer claims a slot with an atomic add and publishes a record by storing
 * its kind last, so SIGKILL at any instant leaves only complete records, possibly with
 * empty slots among them. Times are CLOCK_MONOTONIC ns; the header contains the
 * offset to CLOCK_BOOTTIME.
 *
 * `truth check` checks these properties of a run that was not killed:
 *  - no file is truncated and no record was dropped;
 *  - the TRUTH_PHASE spans of a thread cover its TRUTH_THREAD span without gaps or
 *    overlaps. Each begins and ends at the call boundary of
 *    docs/concepts/phases-and-roles.md. An optimizer step ends 5 ms of wall time after
 *    its sync; then the phase is Unknown. Taking a batch that is ready is not a wait,
 *    and therefore not DataLoading;
 *  - a process is in the phase of its launcher, or of its only thread;
 *  - every TRUTH_LAUNCH has one TRUTH_BUSY of the same process, device and
 *    sequence, with the same work on the same stream, that starts no earlier.
 *    A launch of a graph has one or more, of any work;
 *  - every TRUTH_BLOCKED lies within the TRUTH_LAUNCH of the same process, device and
 *    sequence;
 *  - the TRUTH_DID spans of a thread cover its TRUTH_THREAD span in the same way. A log
 *    has either phases, where every step ends in a sync, or TRUTH_DID, where launches
 *    run ahead of the device. The true idle time of a device is the time outside of the
 *    union of its TRUTH_BUSY spans, and its true cause is what the thread that launches
 *    next did in that time;
 *  - a thread has the role of its TRUTH_THREAD for its whole life, or its TRUTH_ROLE spans
 *    cover its life;
 *  - every TRUTH_WAIT was ended by a thread that has a TRUTH_THREAD in some log. A task is
 *    on the critical path of a launcher while the launcher waits for it, or while a task
 *    on that path waits for it;
 *  - CPU time and delay in TRUTH_IDLE, TRUTH_LOAD and TRUTH_DID do not exceed their span;
 *  - steps count up from 0, and each starts at the end of the previous step;
 *  - a request completes no earlier than its first token.
 */
#include <stdbool.h>

#include "abi/types.h"

#define TRUTH_MAGIC   "ZNTRUTH"
#define TRUTH_VERSION 1

enum truth_kind {
	TRUTH_NONE = 0, /* the slot was not written */
	TRUTH_THREAD,	/* life of a thread; sub: enum truth_role */
	TRUTH_PHASE,	/* a thread was in phase sub (enum phase) */
	TRUTH_STEP,	/* one training step; a: step number, b: rank */
	TRUTH_LOAD, /* activity of a loader; sub: enum truth_load; a: batch | rank << 32, b: ns of
		       it on a CPU, c: ns runnable but not running */
	TRUTH_REQUEST,	  /* serving: arrival to first token; a: request, b: completion time */
	TRUTH_CHECKPOINT, /* a: step number, b: bytes */
	TRUTH_BUSY,	  /* device busy; sub: enum truth_work; a: device, b: stream, c: sequence */
	TRUTH_ALLOC,	  /* sub: allocation API; a: device, b: pointer or handle, c: bytes */
	TRUTH_FREE,	  /* same as the allocation it ends */
	TRUTH_COLLECTIVE, /* entry to end; sub: op; a: rank | nranks << 32, b: bytes, c: comm */
	TRUTH_SYNC,	  /* a sync call, entry to return; a: device, b: stream (0: whole device) */
	TRUTH_LAUNCH,	  /* a launch, copy or collective call, entry to return; rest as BUSY */
	TRUTH_IDLE, /* a launcher in a phase (sub) without work for its device; a, b: b, c of LOAD
		     */
	TRUTH_BLOCKED, /* part of a launch: its queue was full; rest as the launch */
	TRUTH_DID,   /* activity of a thread that launches; sub: enum truth_did; a, b: b, c of LOAD;
			c: a of LOAD for TRUTH_DID_DATA */
	TRUTH_TOKEN, /* serving: end of the previous round of the batch to the end of this one,
			which computed a further token; a: requests in the batch */
	TRUTH_ROLE, /* a thread had role sub (enum truth_role); only for a thread whose role changed
		     */
	TRUTH_WAIT, /* a thread waited for another task; a: thread id of the task that ended it */
	TRUTH_NR,
};

enum truth_role {
	TRUTH_ROLE_OTHER = 0,
	TRUTH_ROLE_LAUNCHER,
	TRUTH_ROLE_SYNC_WAITER,
	TRUTH_ROLE_LOADER,
	TRUTH_ROLE_COLLECTIVE_HELPER,
	/* On the critical path of a launcher, but neither launcher nor loader: an OpenMP team, an
	 * engine core. */
	TRUTH_ROLE_FEEDER_PATH,
};

enum truth_load {
	TRUTH_LOAD_IO = 0,  /* waiting for storage */
	TRUTH_LOAD_CPU,	    /* preprocessing */
	TRUTH_LOAD_BLOCKED, /* the prefetch queue is full */
};

enum truth_did {
	TRUTH_DID_COMPUTE = 0, /* its own work, and launches */
	TRUTH_DID_DEVICE,      /* waited for the device */
	TRUTH_DID_DATA,	       /* waited for a batch */
	TRUTH_DID_REQUEST,     /* waited or polled for a request */
	TRUTH_DID_PEER,	       /* waited for a thread of the process that logs TRUTH_DID itself */
};

enum truth_work {
	TRUTH_WORK_KERNEL = 0,
	TRUTH_WORK_COPY,
	TRUTH_WORK_COLLECTIVE,
	TRUTH_WORK_MEMSET,
	TRUTH_WORK_GRAPH, /* a launch; the device is busy with the work in the graph */
};

struct truth_header {
	char magic[8];
	u32 version;
	u32 record_size;
	u32 pid;
	u32 capacity; /* number of records that fit into the file */
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
 * Opens the log of this process for `writer` in directory `dir`, with room for
 * `capacity` records (the file is sparse). Creates the directory if needed. A forked
 * child needs its own log: it logs nothing through the log of its parent. Returns 0
 * or a negative errno.
 */
int truth_open(const char *dir, const char *writer, u32 capacity, struct truth **ret);
struct truth *truth_free(struct truth *truth); /* accepts NULL; always returns NULL */

/* Thread-safe and lock-free. Records that do not fit are counted. With NULL it logs nothing. */
void truth_log(struct truth *truth, enum truth_kind kind, u16 sub, u64 start_ns, u64 end_ns, u64 a,
	       u64 b, u64 c);

u64 truth_now_ns(void);

/* All published records of a file, sorted by start time. Accepts a truncated file. */
struct truth_file {
	struct truth_header header;
	struct truth_record *records;
	u64 nr_records;
	bool cut; /* the file is shorter than its capacity requires */
};

int truth_read(const char *path, struct truth_file *ret);
void truth_file_done(struct truth_file *file);
