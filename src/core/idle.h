/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The idle account of one process: for how long its GPU certainly worked, for how long it
 * certainly had no work, and for how long neither is known. The account starts with the
 * first launch. It follows the state of the launcher. While the GPU does not certainly work,
 * each nanosecond is booked to what the launcher did: if a counter of the GPU shows later
 * that the GPU was idle in the open time, the cause is known. The booked times add up to
 * the elapsed time.
 *
 * The cause of a sleep outside of any runtime call is known only when another task ends
 * the sleep. Until then its time is pending and belongs to no cause. When the cause is
 * known, the whole pending time is booked at once.
 */
#include <stdbool.h>
#include "abi/idle.h"
#include "abi/types.h"

#define IDLE_CAUSE_SLOTS 16 /* a power of two, so that the verifier can check a masked index */

/* A sleep whose cause is not known yet. */
#define IDLE_UNDECIDED	IDLE_CAUSE_NR
/* A pending sleep of this length is reported before it ends. */
#define IDLE_PENDING_NS NSEC_PER_SEC

/* What a loader did while its consumer waited. The rest of the wait is "other". */
enum loader_share {
	SHARE_CPU,
	SHARE_RUNQUEUE,
	SHARE_DISK,
	SHARE_NR,
};

/* The states of one loader during one wait of its consumer. */
struct wait_share {
	u64 wait_ns;  /* when that wait began; 0: no wait */
	u64 until_ns; /* booked up to here */
	u64 ns[SHARE_NR];
};

/* The same, with the names of the culprits: see struct culprit_key. */
struct loader_wait {
	struct wait_share share;
	u64 longest_ns;		    /* the longest of its waits for a CPU */
	char ran_instead[COMM_LEN]; /* the task with the longest turn in that wait */
	char disk[COMM_LEN];
};

/* While the framework reports that it loads data, the launcher itself counts as the loader. */
static const u8 idle_causes_of_loading[IDLE_CAUSE_SLOTS] = {
	[IDLE_CPU] = IDLE_LOADER_CPU,	 [IDLE_RUNQUEUE] = IDLE_LOADER_RUNQUEUE,
	[IDLE_DISK] = IDLE_LOADER_DISK,	 [IDLE_MEMORY] = IDLE_MEMORY,
	[IDLE_LOCK] = IDLE_LOADER_OTHER, [IDLE_OTHER] = IDLE_LOADER_OTHER,
};

/* What is known about the GPU. */
enum idle_gpu {
	IDLE_GPU_OPEN, /* it has work that is not known to be done */
	IDLE_GPU_BUSY, /* a thread waits for work that is not done */
	IDLE_GPU_DONE, /* all work is known to be done */
	IDLE_GPU_NR,
};

/* Time in which the GPU does not certainly work. */
struct idle_sums {
	u64 cause_ns[IDLE_CAUSE_NR];
	u64 pending_ns; /* of the undecided sleep */
};

struct idle_account {
	u64 since_ns; /* booked up to here; 0 until the first launch */
	u64 busy_ns;
	struct idle_sums done; /* the GPU had no work */
	struct idle_sums open; /* the GPU may have had no work */
	u64 blocked_ns;	       /* the part of open.cause_ns[IDLE_CPU] in which it worked */
	u32 doing;	       /* the launcher's cause, or IDLE_UNDECIDED */
	u8 gpu;		       /* enum idle_gpu */
	u8 in_collective;      /* the launcher is in a blocking collective call */
	u8 sleeps_on_lock;     /* the undecided sleep is a lock wait, unless a loader brings data */
	u8 had_data;	       /* the last undecided sleep was for data */
};

static inline u32 idle_cause_now(const struct idle_account *account)
{
	return account->in_collective ? IDLE_COLLECTIVE : account->doing;
}

static inline void idle_sums_add(struct idle_sums *sums, u64 cause, u64 ns)
{
	/* Keeps the compiler from checking a different value, which the verifier could not use. */
	asm volatile("" : "+r"(cause));
	if (cause < IDLE_CAUSE_NR)
		sums->cause_ns[cause] += ns;
	else
		sums->pending_ns += ns;
}

/* Books the time since the last call to the state that held until now. */
static inline void idle_book(struct idle_account *account, u64 now)
{
	u64 passed = now - account->since_ns;

	if (!account->since_ns || now < account->since_ns)
		return;
	account->since_ns = now;
	if (account->gpu == IDLE_GPU_BUSY)
		account->busy_ns += passed;
	else
		idle_sums_add(account->gpu == IDLE_GPU_DONE ? &account->done : &account->open,
			      idle_cause_now(account), passed);
}

/* The cause of the undecided sleep is known. */
static inline void idle_sums_decide(struct idle_sums *sums, u32 cause)
{
	u64 ns = sums->pending_ns;

	sums->pending_ns = 0;
	idle_sums_add(sums, cause, ns);
}

/* An undecided sleep ended and no loader brought data. */
static inline void idle_decide(struct idle_account *account, u64 now)
{
	u64 cause = account->sleeps_on_lock ? IDLE_LOCK : IDLE_OTHER;

	idle_book(account, now);
	idle_sums_decide(&account->done, cause);
	idle_sums_decide(&account->open, cause);
	account->had_data = 0;
}

/* The launcher changes its state at `now`. */
static inline void idle_doing(struct idle_account *account, u32 cause, u64 now)
{
	if (account->doing == IDLE_UNDECIDED)
		idle_decide(account, now);
	else
		idle_book(account, now);
	account->doing = cause;
}

/* The launcher goes to sleep. If no loader brings data, it is a lock wait or another sleep. */
static inline void idle_sleeps(struct idle_account *account, bool on_lock, u64 now)
{
	idle_doing(account, IDLE_UNDECIDED, now);
	account->sleeps_on_lock = on_lock;
}

/* The GPU got work. The launcher is running, because it just launched. */
static inline void idle_ends(struct idle_account *account, u64 now)
{
	if (!account->since_ns)
		account->since_ns = now;
	idle_doing(account, IDLE_CPU, now);
	if (account->gpu == IDLE_GPU_DONE)
		account->gpu = IDLE_GPU_OPEN;
	account->in_collective = 0;
}

static inline void idle_set_gpu(struct idle_account *account, u32 gpu, u64 now)
{
	idle_book(account, now);
	account->gpu = gpu;
}

/*
 * The launcher spent a part of the open time on a CPU, in launches into a full queue: the GPU
 * certainly worked then. It is counted beside the open time, because no sum ever decreases.
 */
static inline void idle_blocked(struct idle_account *account, u64 ns, u64 now)
{
	idle_book(account, now);
	account->blocked_ns += ns;
	if (account->blocked_ns > account->open.cause_ns[IDLE_CPU])
		account->blocked_ns = account->open.cause_ns[IDLE_CPU];
}

/* All time of one cause. */
static inline u64 idle_total(const struct idle_account *account, u32 cause)
{
	return account->done.cause_ns[cause] + account->open.cause_ns[cause];
}

static inline void idle_set_collective(struct idle_account *account, bool inside, u64 now)
{
	idle_book(account, now);
	account->in_collective = inside;
}

/*
 * Books a state that a loader had from `since` to `now`. Only the part inside the wait of its
 * consumer counts. Returns the length of that part.
 */
static inline u64 share_book(struct wait_share *share, u64 wait_ns, u64 what, u64 since, u64 now)
{
	u64 from;

	if (share->wait_ns != wait_ns)
		*share = (struct wait_share){ .wait_ns = wait_ns, .until_ns = wait_ns };
	from = since > share->until_ns ? since : share->until_ns;
	asm volatile("" : "+r"(what));
	if (what >= SHARE_NR || now <= from)
		return 0;
	share->ns[what] += now - from;
	share->until_ns = now;
	return now - from;
}

static inline u64 share_total(const struct wait_share *share)
{
	return share->ns[SHARE_CPU] + share->ns[SHARE_RUNQUEUE] + share->ns[SHARE_DISK];
}

/* Books a part of the undecided sleep. Gives the time that did not fit. */
static inline u64 idle_sums_part(struct idle_sums *sums, u32 cause, u64 ns)
{
	u64 part = ns < sums->pending_ns ? ns : sums->pending_ns;

	sums->cause_ns[cause] += part;
	sums->pending_ns -= part;
	return ns - part;
}

/*
 * A loader brought the data and woke the launcher. The wait is booked to what the loader did
 * during the wait. The open part of the wait comes before the part in which the GPU was done.
 */
static inline void idle_decide_data(struct idle_account *account, const struct wait_share *share,
				    u64 wait_ns, u64 now)
{
	static const u8 causes[SHARE_NR] = {
		[SHARE_CPU] = IDLE_LOADER_CPU,
		[SHARE_RUNQUEUE] = IDLE_LOADER_RUNQUEUE,
		[SHARE_DISK] = IDLE_LOADER_DISK,
	};

	idle_book(account, now);
	for (u32 i = 0; i < SHARE_NR; i++) {
		u64 left = share->wait_ns == wait_ns ? share->ns[i] : 0;

		left = idle_sums_part(&account->open, causes[i], left);
		idle_sums_part(&account->done, causes[i], left);
	}
	idle_sums_decide(&account->open, IDLE_LOADER_OTHER);
	idle_sums_decide(&account->done, IDLE_LOADER_OTHER);
	account->had_data = 1;
	account->doing = IDLE_RUNQUEUE;
}

/*
 * User space only: brings the account up to `now`, including the current state. A pending sleep
 * is left out, so that a booked cause never decreases later. If it is longer than
 * IDLE_PENDING_NS, the process may be stuck. The sleep is then booked as a wait for data if the
 * last sleep was one, else as a lock wait or another sleep.
 */
void idle_settle(struct idle_account *account, u64 now);
