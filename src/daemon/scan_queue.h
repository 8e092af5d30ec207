/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which process is scanned next. Each owner has a queue of its own, and the owner whose scans took
 * the least time is next: slow files of one user delay only that user. An owner is a user; the
 * processes of root belong to their group, because containers often run as root. What an owner may
 * not have is counted.
 */
#include "base/cleanup.h"
#include "collect/tenant.h"

#define SCAN_QUEUE_ROWS	      65536
#define SCAN_QUEUE_OWNERS     256
/* What an owner can use in a window. Files whose calls are known cost nothing. */
#define SCAN_QUEUE_WINDOW_NS  (60 * NSEC_PER_SEC)
#define SCAN_QUEUE_FILES      1024
#define SCAN_QUEUE_BYTES      (2ULL << 30)
/* A scan that takes longer than this is slow. The next one of the same process waits for as long
 * as 20 of them take. */
#define SCAN_QUEUE_SLOW_NS    (50 * NSEC_PER_MSEC)
#define SCAN_QUEUE_SLOW_TIMES 20
/* How long an owner waits after a scan that hung or ended the process that scans, and after the
 * second one: the first time can have another cause. A process whose scan hung waits as long. */
#define SCAN_QUEUE_ENDED_NS   (5 * NSEC_PER_SEC)
#define SCAN_QUEUE_HUNG_NS    (300 * NSEC_PER_SEC)
#define SCAN_QUEUE_STUCK      2

/* A process that is wanted for one purpose. */
struct scan_row {
	pid_t pid;
	u32 kind;	/* see struct scan_request */
	bool has_owner; /* and not: the owner must be asked for first */
	struct tenant owner;
};

struct scan_cost {
	u64 nr_files;
	u64 nr_bytes;
	u64 taken_ns;
};

struct scan_queue;

int scan_queue_new(struct scan_queue **ret);
struct scan_queue *scan_queue_free(struct scan_queue *queue);
DEFINE_CLEANUP(struct scan_queue, scan_queue_free);

/* Removes all rows. Owners keep what they used. */
void scan_queue_clear(struct scan_queue *queue);

/* A row that is there already is not added again. */
void scan_queue_add(struct scan_queue *queue, const struct scan_row *row);
bool scan_queue_has(const struct scan_queue *queue, pid_t pid, u32 kind);

/*
 * Takes the next rows, at most `max`: first rows without an owner, which are to be added again with
 * one, then rows to scan. Returns their number.
 */
u32 scan_queue_take(struct scan_queue *queue, u64 now_ns, struct scan_row *ret, u32 max);

/* The scan of a row has ended; it hung or ended the process that scans. The row is not added. */
void scan_queue_charge(struct scan_queue *queue, const struct scan_row *row,
		       const struct scan_cost *cost, u64 now_ns);
void scan_queue_blame(struct scan_queue *queue, const struct scan_row *row, bool has_hung,
		      u64 began_ns, u64 now_ns);

/* A process that scanned a row of this owner hangs and cannot be killed; it has ended. An owner of
 * SCAN_QUEUE_STUCK of them waits until one ends. */
void scan_queue_stuck(struct scan_queue *queue, const struct tenant *owner);
void scan_queue_unstuck(struct scan_queue *queue, const struct tenant *owner);

/* Refused rows and scans, in all. */
u64 scan_queue_refused(const struct scan_queue *queue);
/* Calls `fn` for each owner with refusals. */
typedef void (*scan_quota_fn)(void *ctx, u32 uid, u64 nr_refused);
void scan_queue_quotas(const struct scan_queue *queue, scan_quota_fn fn, void *ctx);
