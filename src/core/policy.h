/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy of the scheduler. It is pure, so that user space can test every case.
 * class_of() implements the rules in docs/concepts/scheduler.md: it chooses the class of
 * a task. A row of class_rules defines what a class means.
 */
#include "abi/sched.h"
#include "abi/signals.h"
#include "core/tier.h"

/*
 * A launcher without a sync for this long no longer feeds its GPU. Where the CPU does a part of
 * the step, it still does for two steps, up to a bound.
 */
#define FEEDING_MIN_NS	 NSEC_PER_SEC
#define FEEDING_MAX_NS	 (20 * NSEC_PER_SEC)
/* A loader is late for this long after its consumer last had to wait. */
#define LATE_MAX_NS	 (4 * NSEC_PER_SEC)
/*
 * A spinning sync runs from this long before the expected end of the work on the GPU until
 * this long after it. Outside of that time it runs at intervals, for a short turn, to see
 * whether the work ended at another time.
 */
#define SPIN_MARGIN_NS	 NSEC_PER_MSEC
#define SPIN_PATIENCE_NS (2 * NSEC_PER_MSEC)
#define SPIN_CHECK_NS	 (2 * NSEC_PER_MSEC)
#define SPIN_TURN_NS	 (100 * NSEC_PER_USEC)
/*
 * The interval at which a collective helper that polls for other ranks runs. A helper that
 * gives up its CPU in less than this time and stays runnable counts as polling.
 */
#define POLL_NS		 (2 * NSEC_PER_MSEC)
/*
 * For so long after a process opened its first GPU, its first calls may not be seen, because its
 * runtime is being probed, and no wait has shown yet which tasks its launcher waits for.
 */
#define OPENING_NS	 (2 * NSEC_PER_SEC)

enum sched_rank {
	RANK_IDLE,
	RANK_ORDINARY,
	RANK_LOADER,
	RANK_FEEDER,
};

struct class_rule {
	u64 slice_ns;
	u64 credit_ns; /* how far its deadline is before its virtual time */
	u8 queue;      /* the queue in which it waits */
	u8 rank;       /* above RANK_ORDINARY: promoted, runs before ordinary tasks, adds debt */
	u8 preempts;   /* preempts a task of lower rank */
};

/* clang-format off */
static const struct class_rule class_rules[CLASS_SLOTS] = {
	/*                        slice              credit              queue           rank, preempts */
	[CLASS_ORDINARY] =      { 5 * NSEC_PER_MSEC, 0,                  QUEUE_ORDINARY, RANK_ORDINARY, 0 },
	[CLASS_FEEDER] =        { 5 * NSEC_PER_MSEC, 50 * NSEC_PER_MSEC, QUEUE_FIRST,    RANK_FEEDER,   1 },
	[CLASS_WANTED_LOADER] = { 5 * NSEC_PER_MSEC, 0,                  QUEUE_FIRST,    RANK_LOADER,   1 },
	[CLASS_LATE_LOADER] =   { 5 * NSEC_PER_MSEC, 0,                  QUEUE_FIRST,    RANK_LOADER,   0 },
	[CLASS_LOADER] =        { 5 * NSEC_PER_MSEC, 0,                  QUEUE_LOADERS,  RANK_ORDINARY, 0 },
	[CLASS_SPINNER] =       { 1 * NSEC_PER_MSEC, 0,                  QUEUE_SPINNERS, RANK_ORDINARY, 0 },
	[CLASS_SYSTEM] =        { 5 * NSEC_PER_MSEC, 0,                  QUEUE_SYSTEM,   RANK_ORDINARY, 0 },
	[CLASS_IDLE] =          { 1 * NSEC_PER_MSEC, 0,                  QUEUE_IDLE,     RANK_IDLE,     0 },
};
/* clang-format on */

/*
 * The effect of a tier on ordinary tasks. Among tasks with similar virtual time, the tier
 * decides which task runs first. It also decides whether a task that wakes up may preempt.
 * A credit applies to one wait in the queue and is returned when the task starts to run. A
 * tier therefore changes when a task gets its CPU time, but not how much.
 */
struct tier_rule {
	u64 credit_ns;
	/* A task that wakes up with a virtual time behind the clock preempts the lowest tier. */
	bool takes_batch;
};

#define TIER_SLOTS 4 /* a power of two, so that the verifier can check a masked index */

static const struct tier_rule tier_rules[TIER_SLOTS] = {
	[TIER_BATCH] = { 0, false },
	[TIER_INTERACTIVE] = { 2 * NSEC_PER_MSEC, true },
	[TIER_LAT_CRITICAL] = { 4 * NSEC_PER_MSEC, true },
};

/* The inputs of the rules. All zero means that nothing is known about the task. */
struct class_view {
	u64 now;
	u64 last_sync_ns;
	u64 expected_end_ns; /* of the work on the GPU; 0 if not known */
	u64 cycle_ns;	     /* from one sync to the next; 0 if not known */
	u32 role;
	u8 device_busy;	   /* the process has work queued on a GPU */
	u8 in_collective;  /* the process is in a collective */
	u8 in_sync;	   /* the thread is inside a sync call */
	u8 woken;	   /* it was just woken up */
	u8 polls;	   /* it had a CPU and gave it up soon, without sleeping */
	u8 awaited;	   /* of a critical task: its launcher cannot go on without it */
	u8 opens;	   /* its process has just opened a GPU */
	u8 parent_opens;   /* it was forked by a process that has just opened one */
	u8 consumer_waits; /* of a loader: the launcher of its consumer sleeps and waits for data */
	u8 consumer_waited; /* of a loader: its consumer waited for data within LATE_MAX_NS */
};

static inline bool rule_on(u32 rules_off, u32 rule)
{
	return !(rules_off & (1U << rule));
}

/* When a spinning sync that gave up its CPU should run again. */
static inline u64 spin_due(u64 expected_end_ns, u64 now)
{
	u64 begin = expected_end_ns - SPIN_MARGIN_NS;

	return expected_end_ns > now + SPIN_MARGIN_NS && begin < now + SPIN_CHECK_NS
		       ? begin
		       : now + SPIN_CHECK_NS;
}

/* `cycle_ns`: from one sync to the next; 0 if not known. */
static inline u64 feeding_ns(u64 cycle_ns)
{
	if (cycle_ns < FEEDING_MIN_NS / 2)
		return FEEDING_MIN_NS;
	return cycle_ns < FEEDING_MAX_NS / 2 ? 2 * cycle_ns : FEEDING_MAX_NS;
}

static inline enum sched_class class_of_role(const struct class_view *view, u32 rules_off)
{
	/* A task that was just woken may have new work for the GPU. Its next slice shows it. */
	bool feeds = view->device_busy || view->woken ||
		     view->now < view->last_sync_ns + feeding_ns(view->cycle_ns);

	switch (view->role) {
	case ROLE_LAUNCHER:
	case ROLE_SYNC_WAITER:
		/* A spinning sync makes no progress before the GPU is done. */
		if (view->in_sync && view->device_busy && !view->woken &&
		    rule_on(rules_off, RULE_SPINNER) && view->expected_end_ns &&
		    (view->now + SPIN_MARGIN_NS < view->expected_end_ns ||
		     view->now > view->expected_end_ns + SPIN_PATIENCE_NS))
			return CLASS_SPINNER;
		/* It polls for work that another task brings, and must not delay that task. */
		if (view->polls && !view->woken && rule_on(rules_off, RULE_POLLER))
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
		/* It polls and yields while ranks are missing. This must not delay other tasks. */
		if (!view->woken)
			return view->polls ? CLASS_SPINNER : CLASS_ORDINARY;
		return CLASS_FEEDER;
	case ROLE_CRITICAL:
		return view->awaited && rule_on(rules_off, RULE_CRITICAL) ? CLASS_FEEDER
									  : CLASS_ORDINARY;
	default: return CLASS_ORDINARY;
	}
}

static inline enum sched_class class_of(const struct class_view *view, u32 rules_off)
{
	enum sched_class class = class_of_role(view, rules_off);

	if (class != CLASS_ORDINARY || !rule_on(rules_off, RULE_OPENING))
		return class;
	/* Before ordinary tasks, and never before a launcher that feeds its GPU. */
	if (view->opens)
		return CLASS_WANTED_LOADER;
	return view->parent_opens ? CLASS_LATE_LOADER : CLASS_ORDINARY;
}

/*
 * The debt of a CPU to ordinary tasks, which keeps the reserved share for them. A promoted
 * task adds debt in proportion to its CPU time. The CPU time of any other task pays it off.
 */
static inline u64 debt_after(u64 debt_ns, bool promoted, u64 ran_ns, u32 reserved_percent)
{
	if (promoted)
		debt_ns += ran_ns * reserved_percent / (100 - reserved_percent);
	else
		debt_ns -= ran_ns < debt_ns ? ran_ns : debt_ns;
	return debt_ns < DEBT_MAX_NS ? debt_ns : DEBT_MAX_NS;
}

/*
 * Tasks of the system (kernel threads, services) are served first when they wake up, up to
 * a tenth of each CPU in the long run. Beyond that they are ordinary tasks.
 */
#define SYSTEM_PERCENT	     10
#define SYSTEM_DEBT_LIMIT_NS (100 * NSEC_PER_MSEC)
#define SYSTEM_DEBT_MAX_NS   (200 * NSEC_PER_MSEC)

static inline u64 system_debt_after(u64 debt_ns, bool is_system, u64 ran_ns)
{
	if (is_system)
		debt_ns += ran_ns * (100 - SYSTEM_PERCENT) / SYSTEM_PERCENT;
	else
		debt_ns -= ran_ns < debt_ns ? ran_ns : debt_ns;
	return debt_ns < SYSTEM_DEBT_MAX_NS ? debt_ns : SYSTEM_DEBT_MAX_NS;
}
