/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Evidence for the role of a thread, from the waits between tasks. Ancestry is only a guess for
 * the start.
 *
 * A task that ends a wait of the launcher works for it, and so does a task that wakes such a
 * task during the wait. How many wakeups it is away from the launcher is its distance.
 *
 * A task that the launcher wakes was asked. If a task that was asked wakes the launcher before
 * it has launched again, or stops its work about when the launcher goes on, the launcher could
 * not go on without it. A launcher that polls memory is not woken: it waits for a task that it
 * asked if it polls until that task rests. Loaders differ: the launcher launches while they work.
 */
#include <stdbool.h>
#include "abi/types.h"

/* Longer chains would reach tasks that only happened to wake one of the others. */
#define ROLE_DISTANCE_MAX 4
/* A child process that has proven nothing for this long while its parent launched is no loader. */
#define ROLE_PRESUMED_NS  NSEC_PER_SEC
/* What was proven by a wakeup from outside of the family is forgotten after this time. */
#define ROLE_PROVEN_NS	  (10 * NSEC_PER_SEC)
/* Answers that make a thread a member of a team, and the most that are counted. */
#define ROLE_ANSWERS	  2
#define ROLE_ANSWERS_MAX  4
/* A launcher that goes on sooner has not waited for the task that it asked. */
#define ROLE_WORKED_NS	  (500 * NSEC_PER_USEC)
/* Members of a team may spin for so long after their work. A task that works on is a loader. */
#define ROLE_WORKS_ON_NS  (2 * NSEC_PER_MSEC)
/* Turns that end with a yield before a launcher polls. */
#define ROLE_YIELDS	  3

struct role_evidence {
	u64 presumed_ns; /* when its ancestry was taken for evidence; 0: never */
	u64 proven_ns;	 /* when it last was part of a wait; 0: never */
	u64 asked; /* launches of its process plus 1 when the launcher woke it; 0: not asked */
	u64 asked_ns;
	u64 asked_cpu_ns; /* its CPU time at that moment */
	u64 went_on_ns;	  /* when the launcher was first seen to have gone on since; 0: not yet */
	u64 nr_switches;  /* of its parent when it last stopped polling */
	u32 nr_yields;	  /* turns in a row that ended with a yield */
	u16 distance;
	u16 nr_answers;
};

static inline void role_presume(struct role_evidence *e, u64 now)
{
	e->presumed_ns = now;
}

static inline void role_prove(struct role_evidence *e, u32 distance, u64 now)
{
	if (!e->proven_ns || distance < e->distance)
		e->distance = (u16)distance;
	e->proven_ns = now;
}

/* `launched_ns`: when its consumer last began to launch. */
static inline bool role_was_guess(const struct role_evidence *e, u64 launched_ns)
{
	return e->presumed_ns && !e->proven_ns && launched_ns > e->presumed_ns + ROLE_PRESUMED_NS;
}

static inline bool role_is_old(const struct role_evidence *e, u64 now)
{
	return e->proven_ns && now > e->proven_ns + ROLE_PROVEN_NS;
}

/* Whether a task that wakes this one during a wait may be part of the chain. */
static inline bool role_chain_goes_on(const struct role_evidence *e)
{
	return e->distance && e->distance < ROLE_DISTANCE_MAX;
}

static inline void role_ask(struct role_evidence *e, u64 nr_launches, u64 cpu_ns, u64 now)
{
	e->asked = nr_launches + 1;
	e->asked_ns = now;
	e->asked_cpu_ns = cpu_ns;
	e->went_on_ns = 0;
}

/* Whether the launcher has launched nothing since it asked this thread. */
static inline bool role_delays(const struct role_evidence *e, u64 nr_launches)
{
	return e->asked == nr_launches + 1;
}

/*
 * Whether the launcher waits for this thread, or went on just now. A thread of a team spins for
 * a while before it sleeps. Behind ordinary tasks it would still spin when the launcher needs it
 * next, and no wakeup would show that. `fed_ns`: when the launcher last fed an idle GPU.
 */
static inline bool role_is_needed(struct role_evidence *e, u64 nr_launches, u64 fed_ns, u64 now)
{
	if (role_delays(e, nr_launches))
		return true;
	if (!e->asked)
		return false;
	if (!e->went_on_ns)
		e->went_on_ns = fed_ns;
	return now < e->went_on_ns + ROLE_WORKS_ON_NS;
}

/* Whether the launcher waits for this task of another process. */
static inline bool role_delays_from_outside(const struct role_evidence *e, u64 fed_ns)
{
	return e->asked && e->asked_ns > fed_ns;
}

/* What a task that was asked can know of its launcher. */
struct role_question {
	u64 answered_ns; /* when a task that was asked last ended a wait of the launcher */
	u64 polled_ns;	 /* when the launcher last polled for work and had none */
	u64 fed_ns;	 /* when the launcher last gave work to an idle GPU */
	u64 cpu_ns;	 /* CPU time of the task */
	u64 now;
};

/*
 * Whether the task worked for most of the time in which the launcher did not go on, and stopped
 * soon after: half of this time allows for a task that spins before it sleeps.
 */
static inline bool role_was_awaited(u64 waited, u64 worked, u64 works_on)
{
	return waited > ROLE_WORKED_NS && 2 * worked > waited && 2 * works_on < waited;
}

/* A task that was asked goes to sleep. Returns whether the launcher had waited for it. */
static inline bool role_rests(struct role_evidence *e, const struct role_question *q)
{
	bool went_on = q->fed_ns > e->asked_ns, polled = q->polled_ns > e->asked_ns;
	u64 until = went_on ? q->fed_ns : q->now, worked = q->cpu_ns - e->asked_cpu_ns;
	u64 waited = until - e->asked_ns, works_on = q->now - until;

	if (!e->asked)
		return false;
	e->asked = 0;
	if (q->answered_ns > e->asked_ns || (!went_on && polled && worked > ROLE_WORKED_NS) ||
	    (went_on && role_was_awaited(waited, worked, works_on))) {
		e->nr_answers += e->nr_answers < ROLE_ANSWERS_MAX;
		return true;
	}
	if (works_on > ROLE_WORKS_ON_NS && works_on > waited)
		e->nr_answers -= e->nr_answers > 0;
	return false;
}

static inline bool role_is_team(const struct role_evidence *e)
{
	return e->nr_answers >= ROLE_ANSWERS;
}

/* A turn ended. A task that is preempted between two yields still polls. */
static inline void role_turn(struct role_evidence *e, bool runnable, bool yielded)
{
	if (!runnable)
		e->nr_yields = 0;
	else if (yielded && e->nr_yields < ROLE_YIELDS)
		e->nr_yields++;
}

static inline bool role_polls(const struct role_evidence *e)
{
	return e->nr_yields >= ROLE_YIELDS;
}

/* Whether the parent ran since the last time. `nr_switches`: its context switches so far. */
static inline bool role_parent_ran(struct role_evidence *e, u64 nr_switches)
{
	bool ran = e->nr_switches && e->nr_switches != nr_switches;

	e->nr_switches = nr_switches;
	return ran;
}
