/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The account of one process: for how long its device had work, and why it had
 * none the rest of the time. It opens with the first launch. What the launcher
 * does is followed all the time, and every nanosecond of it is booked to a cause
 * while the device is idle: what is booked is what has passed, and no more.
 *
 * Of a sleep outside of any call it is not known what it is for until somebody
 * ends it. Until then it is pending, in no cause; it is booked as a whole.
 */
#include <stdbool.h>
#include "abi/idle.h"
#include "abi/types.h"

#define IDLE_CAUSE_SLOTS 16 /* a power of two, which the verifier understands */

/* A sleep whose cause is not known yet. */
#define IDLE_UNDECIDED	IDLE_CAUSE_NR
/* A pending sleep of this length is told of before it ends. */
#define IDLE_PENDING_NS NSEC_PER_SEC

/* What a loader did while its consumer waited. What it did else is the rest. */
enum loader_share {
	SHARE_CPU,
	SHARE_RUNQUEUE,
	SHARE_DISK,
	SHARE_NR,
};

/* One loader's part in one wait of its consumer. */
struct wait_share {
	u64 wait_ns;  /* when that wait began; 0: none */
	u64 until_ns; /* booked up to here */
	u64 ns[SHARE_NR];
};

/* The same, and who stood in its way: see culprit_key. */
struct loader_wait {
	struct wait_share share;
	u64 longest_ns;		    /* of its waits for a CPU */
	char ran_instead[COMM_LEN]; /* the longest time */
	char disk[COMM_LEN];
};

/* While a framework says that it gets data, its launcher is what a loader else is. */
static const u8 idle_causes_of_loading[IDLE_CAUSE_SLOTS] = {
	[IDLE_CPU] = IDLE_LOADER_CPU,	 [IDLE_RUNQUEUE] = IDLE_LOADER_RUNQUEUE,
	[IDLE_DISK] = IDLE_LOADER_DISK,	 [IDLE_MEMORY] = IDLE_MEMORY,
	[IDLE_LOCK] = IDLE_LOADER_OTHER, [IDLE_OTHER] = IDLE_LOADER_OTHER,
};

struct idle_account {
	u64 since_ns; /* booked up to here; 0 until the first launch */
	u64 busy_ns;
	u64 idle_ns[IDLE_CAUSE_NR];
	u64 pending_ns;	   /* of the undecided sleep */
	u32 doing;	   /* the launcher's cause, or IDLE_UNDECIDED */
	u8 is_idle;	   /* the device has nothing to do */
	u8 in_collective;  /* the launcher is in a collective call that blocks */
	u8 sleeps_on_lock; /* of an undecided sleep: what it is if nobody brings data */
	u8 had_data;	   /* the last undecided sleep was for data */
};

static inline u32 idle_cause_now(const struct idle_account *account)
{
	return account->in_collective ? IDLE_COLLECTIVE : account->doing;
}

/* Books what has passed to what was going on. */
static inline void idle_book(struct idle_account *account, u64 now)
{
	u64 cause = idle_cause_now(account);
	u64 passed = now - account->since_ns;

	if (!account->since_ns || now < account->since_ns)
		return;
	account->since_ns = now;
	/* The check must stay one of this very number, or the verifier cannot use it. */
	asm volatile("" : "+r"(cause));
	if (!account->is_idle)
		account->busy_ns += passed;
	else if (cause < IDLE_CAUSE_NR)
		account->idle_ns[cause] += passed;
	else
		account->pending_ns += passed;
}

/* Of a sleep that nobody ended with data. */
static inline void idle_decide(struct idle_account *account, u64 now)
{
	idle_book(account, now);
	account->idle_ns[account->sleeps_on_lock ? IDLE_LOCK : IDLE_OTHER] += account->pending_ns;
	account->pending_ns = 0;
	account->had_data = 0;
}

/* The launcher does something else from now on. */
static inline void idle_doing(struct idle_account *account, u32 cause, u64 now)
{
	if (account->doing == IDLE_UNDECIDED)
		idle_decide(account, now);
	else
		idle_book(account, now);
	account->doing = cause;
}

/* It goes to sleep, for data or, if nobody brings any, for a lock or something else. */
static inline void idle_sleeps(struct idle_account *account, bool on_lock, u64 now)
{
	idle_doing(account, IDLE_UNDECIDED, now);
	account->sleeps_on_lock = on_lock;
}

/* The device got work. Whoever gave it some ran. */
static inline void idle_ends(struct idle_account *account, u64 now)
{
	if (!account->since_ns)
		account->since_ns = now;
	idle_doing(account, IDLE_CPU, now);
	account->is_idle = 0;
	account->in_collective = 0;
}

/* The device has done all of it. */
static inline void idle_begins(struct idle_account *account, u64 now)
{
	idle_book(account, now);
	account->is_idle = 1;
}

static inline void idle_set_collective(struct idle_account *account, bool inside, u64 now)
{
	idle_book(account, now);
	account->in_collective = inside;
}

/*
 * A loader was in one state from `since` to `now`, which the wait of its consumer overlaps.
 * Gives for how long.
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

/*
 * Somebody brought the data and woke the launcher up: the wait goes to what the loader did
 * meanwhile.
 */
static inline void idle_decide_data(struct idle_account *account, const struct wait_share *share,
				    u64 wait_ns, u64 now)
{
	static const u8 causes[SHARE_NR] = {
		[SHARE_CPU] = IDLE_LOADER_CPU,
		[SHARE_RUNQUEUE] = IDLE_LOADER_RUNQUEUE,
		[SHARE_DISK] = IDLE_LOADER_DISK,
	};
	u64 left;

	idle_book(account, now);
	left = account->pending_ns;
	for (u32 i = 0; i < SHARE_NR; i++) {
		u64 part = share->wait_ns == wait_ns ? share->ns[i] : 0;

		part = part < left ? part : left;
		account->idle_ns[causes[i]] += part;
		left -= part;
	}
	account->idle_ns[IDLE_LOADER_OTHER] += left;
	account->pending_ns = 0;
	account->had_data = 1;
	account->doing = IDLE_RUNQUEUE;
}

/*
 * User space only: the account as it stands at `now`, with the current stay. A sleep that
 * is pending is left out, so that no cause is ever taken back, until it is so long that
 * something is stuck: it is then told to be what the last one was.
 */
void idle_settle(struct idle_account *account, u64 now);
