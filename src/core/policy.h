/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the scheduler makes of a task: pure, so that user space can test every
 * case. The rules of DESIGN.md "Scheduler" are class_of(), and what a class
 * means is a row of class_rules.
 */
#include "abi/sched.h"
#include "abi/signals.h"
#include "core/tier.h"

/* A launcher that has not waited for its device for so long does something else. */
#define FEEDING_MAX_NS NSEC_PER_SEC
/* A loader whose consumer had to wait is behind until nobody had to for so long. */
#define LATE_MAX_NS    (4 * NSEC_PER_SEC)
/* A spinning sync comes back so long before the device should be done. */
#define SPIN_MARGIN_NS NSEC_PER_MSEC
/* A helper that polls for other ranks looks every so often; it is known by turns shorter than that.
 */
#define POLL_NS	       (2 * NSEC_PER_MSEC)

struct class_rule {
	u64 slice_ns;
	u64 credit_ns; /* how much earlier than by its virtual time it is due */
	u8 queue;      /* where it waits */
	u8 rank;       /* above 0 it goes first, at the cost of a debt to the others */
	u8 preempts;   /* takes a CPU from somebody of lower rank */
};

/* clang-format off */
static const struct class_rule class_rules[CLASS_SLOTS] = {
	/*                        slice              credit              queue          rank, preempts */
	[CLASS_ORDINARY] =      { 5 * NSEC_PER_MSEC, 0,                  QUEUE_ORDINARY, 0, 0 },
	[CLASS_FEEDER] =        { 5 * NSEC_PER_MSEC, 50 * NSEC_PER_MSEC, QUEUE_FIRST,    2, 1 },
	[CLASS_WANTED_LOADER] = { 5 * NSEC_PER_MSEC, 0,                  QUEUE_FIRST,    1, 1 },
	[CLASS_LATE_LOADER] =   { 5 * NSEC_PER_MSEC, 0,                  QUEUE_FIRST,    1, 0 },
	[CLASS_LOADER] =        { 5 * NSEC_PER_MSEC, 0,                  QUEUE_LOADERS,  0, 0 },
	[CLASS_SPINNER] =       { 1 * NSEC_PER_MSEC, 0,                  QUEUE_SPINNERS, 0, 0 },
};
/* clang-format on */

/*
 * What a tier means to those who are ordinary: who goes first of those that are due
 * at about the same time, and who need not wait for the end of another's slice. A
 * credit is for one turn and is given back when it begins, so a tier buys no CPU
 * time, only when to have it.
 */
struct tier_rule {
	u64 credit_ns;
	u8 takes_below; /* when it wakes up, and is not ahead: the CPU of a tier below this */
};

#define TIER_SLOTS 4 /* a power of two, which the verifier understands */

static const struct tier_rule tier_rules[TIER_SLOTS] = {
	[TIER_BATCH] = { 0, TIER_BATCH },
	[TIER_INTERACTIVE] = { 2 * NSEC_PER_MSEC, TIER_INTERACTIVE },
	[TIER_LAT_CRITICAL] = { 4 * NSEC_PER_MSEC, TIER_INTERACTIVE },
};

/* All that the rules look at. All zero is a task of which nothing is known. */
struct class_view {
	u64 now;
	u64 last_sync_ns;
	u64 expected_end_ns; /* of the device's work, 0 when not known */
	u32 role;
	u8 device_busy;	    /* the process has work queued on a device */
	u8 in_collective;   /* the process is in a collective */
	u8 in_sync;	    /* the thread is inside a call that waits for the device */
	u8 woken;	    /* it slept until now */
	u8 polls;	    /* it had a CPU, and gave it up soon */
	u8 consumer_waits;  /* the launcher it may feed sleeps and wants data */
	u8 consumer_waited; /* of a loader: and it did so lately */
};

static inline bool rule_on(u32 rules_off, u32 rule)
{
	return !(rules_off & (1U << rule));
}

static inline enum sched_class class_of(const struct class_view *view, u32 rules_off)
{
	/* Who slept until now may have been waiting for something to feed: that is seen in a slice.
	 */
	bool feeds =
		view->device_busy || view->woken || view->now < view->last_sync_ns + FEEDING_MAX_NS;

	switch (view->role) {
	case ROLE_LAUNCHER:
	case ROLE_SYNC_WAITER:
		/* Who spins gains nothing by it before the device is done. */
		if (view->in_sync && view->device_busy && !view->woken &&
		    rule_on(rules_off, RULE_SPINNER) && view->expected_end_ns &&
		    view->now + SPIN_MARGIN_NS < view->expected_end_ns)
			return CLASS_SPINNER;
		return feeds && rule_on(rules_off, RULE_FEEDER) ? CLASS_FEEDER : CLASS_ORDINARY;
	case ROLE_LOADER:
		if (view->consumer_waits && rule_on(rules_off, RULE_LOADER))
			return CLASS_WANTED_LOADER;
		if (view->consumer_waited && rule_on(rules_off, RULE_LATE_LOADER))
			return CLASS_LATE_LOADER;
		return CLASS_LOADER;
	case ROLE_COLLECTIVE_HELPER:
		if (!view->in_collective || !rule_on(rules_off, RULE_HELPER))
			return CLASS_ORDINARY;
		/* It polls and yields as long as ranks are missing: that must cost nobody. */
		if (!view->woken)
			return view->polls ? CLASS_SPINNER : CLASS_ORDINARY;
		return CLASS_FEEDER;
	default: return CLASS_ORDINARY;
	}
}

/*
 * What the promoted owe the others, so that these keep a share of each CPU: a
 * promoted task runs up debt in proportion, anybody else's run pays it off.
 */
static inline u64 debt_after(u64 debt_ns, bool promoted, u64 ran_ns, u32 reserved_percent)
{
	if (promoted)
		debt_ns += ran_ns * reserved_percent / (100 - reserved_percent);
	else
		debt_ns -= ran_ns < debt_ns ? ran_ns : debt_ns;
	return debt_ns < DEBT_MAX_NS ? debt_ns : DEBT_MAX_NS;
}
