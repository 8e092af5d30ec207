/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A learner observes one thread. It keeps running averages of the behavior, derives the tier
 * from them, and decides when to report an observation. The BPF programs keep one learner
 * per thread, in task storage.
 *
 * The age of a learner is its amount of evidence: one per sleep, and one per millisecond
 * of CPU time. At age LEARN_AGE the averages are mature and decide the tier. The
 * tier is decided again each time that the age has grown by as much. A thread with a prediction
 * starts with the predicted tier and averages. The predicted tier then needs
 * LEARN_PATIENCE of contrary evidence after maturity before it changes, because a program
 * behaves differently while the dynamic linker still runs. After the first observation, a
 * change of tier needs two judgements: a single one can see a short burst of wakeups, such as
 * those at the end of a thread. The predicted averages fade faster:
 * each burst before maturity halves their weight, so that mature averages are those of the
 * thread itself.
 */
#include <stddef.h>
#include "abi/procdb.h"
#include "core/comm.h"
#include "core/tier.h"

#define LEARN_AGE	8
#define LEARN_PATIENCE	24
/* This much CPU time counts as much as one sleep. */
#define LEARN_AGE_NS	NSEC_PER_MSEC
/* A longer burst is split, so that it counts while the thread still runs. */
#define LEARN_BURST_NS	(10 * NSEC_PER_MSEC)
/* Sleeps are capped at this length, else one long sleep would outweigh much work. */
#define LEARN_SLEEP_NS	(100 * NSEC_PER_MSEC)
/* A thread that ends before it is mature is learned from if it had at least this CPU time. */
#define LEARN_LIFE_NS	(NSEC_PER_MSEC / 2)
/* The shortest time between two changes of the vote of a thread. */
#define LEARN_PAUSE_NS	NSEC_PER_SEC
/* A long-lived thread repeats its vote, so that its profile is not evicted as unused. */
#define LEARN_REPEAT_NS (3600 * NSEC_PER_SEC)
/* The criticality of partners is averaged as a fixed-point number with this scale. */
#define LEARN_PARTS	64

/* The rate of an event, as the average time between two events. */
struct rate {
	u64 last_ns;
	u64 interval_ns; /* 0: not known yet */
};

struct learner {
	u64 exe_id;
	struct rate woken;
	struct rate waking;
	struct rate switched;
	u64 ran_ns;
	u64 aged_ns;  /* the part of ran_ns that is already in the age */
	u64 burst_ns; /* CPU time since the last sleep or since the last update of the averages */
	u64 slept_ns; /* length of the sleep before this burst */
	u64 sleeps_since_ns; /* 0 unless the thread sleeps */
	u64 runtime_avg_ns;  /* 0 until the first burst is in the average, unless predicted */
	u64 runtime_dev_ns;
	u64 sleep_avg_ns;
	u64 told_ns;  /* when the last observation was reported, or 0 */
	u32 partners; /* criticality, scaled by LEARN_PARTS */
	u32 owner;
	u32 age;
	u32 doubt; /* evidence against the tier, in the same unit as the age */
	u8 role;
	u8 tier;
	u8 told_tier;
	u8 predicted;  /* the thread began with a prediction */
	u16 critical;  /* tier_criticality() at the last evaluation */
	u16 nr_bursts; /* bursts in the averages; the count stops at LEARN_AGE */
};
_Static_assert(sizeof(struct learner) == 152, "no hidden padding");

/* Hashes one more word into the identity of an executable. Never returns 0. */
static inline u64 learn_identity(u64 identity, u64 word)
{
	return comm_mix(identity, word);
}

static inline void rate_event(struct rate *rate, u64 now)
{
	u64 passed = now - rate->last_ns;

	/* The clocks of two CPUs may differ slightly. */
	if (rate->last_ns && now > rate->last_ns)
		rate->interval_ns =
			rate->interval_ns ? tier_average(rate->interval_ns, passed) : passed;
	rate->last_ns = now;
}

static inline u64 rate_hz(const struct rate *rate, u64 now)
{
	u64 interval = rate->interval_ns;

	if (!interval)
		return 0;
	/* If the event stopped, the rate falls with the time since the last event. */
	if (now > rate->last_ns && now - rate->last_ns > interval)
		interval = now - rate->last_ns;
	return NSEC_PER_SEC / interval;
}

/* Bursts are at most LEARN_BURST_NS. A larger value from an imported file would fade slowly. */
static inline u64 learn_predicted_ns(u64 ns)
{
	return ns < LEARN_BURST_NS ? ns : LEARN_BURST_NS;
}

/* A thread starts, with the prediction of its profile if there is one. */
static inline void learn_begin(struct learner *l, u64 exe_id, u32 role, u32 owner,
			       const struct procdb_record *prediction)
{
	*l = (struct learner){
		.exe_id = exe_id,
		.role = (u8)role,
		.owner = owner,
		.tier = prediction ? (u8)tier_of(prediction->tier) : TIER_DEFAULT,
		.predicted = prediction != NULL,
	};
	if (!prediction)
		return;
	l->runtime_avg_ns = learn_predicted_ns(prediction->behaviour.runtime_avg_ns);
	l->runtime_dev_ns = learn_predicted_ns(prediction->behaviour.runtime_dev_ns);
}

/* Until the thread is mature, each burst halves the weight of the prediction. */
static inline u64 learn_average(const struct learner *l, u64 old, u64 fresh)
{
	if (l->predicted && l->age < LEARN_AGE)
		return old / 2 + fresh / 2;
	return tier_average(old, fresh);
}

/* Adds the current burst to the averages. */
static inline void learn_take_in(struct learner *l)
{
	u64 burst = l->burst_ns, off;

	if (!l->runtime_avg_ns) {
		l->runtime_avg_ns = burst;
		l->sleep_avg_ns = l->slept_ns;
	} else {
		off = burst > l->runtime_avg_ns ? burst - l->runtime_avg_ns
						: l->runtime_avg_ns - burst;
		l->runtime_dev_ns = learn_average(l, l->runtime_dev_ns, off);
		l->runtime_avg_ns = learn_average(l, l->runtime_avg_ns, burst);
		l->sleep_avg_ns = tier_average(l->sleep_avg_ns, l->slept_ns);
	}
	if (l->nr_bursts < LEARN_AGE)
		l->nr_bursts++;
	l->burst_ns = 0;
	l->slept_ns = 0;
}

static inline enum tier learn_observe(struct learner *l, u64 now)
{
	struct tier_view view = {
		.runtime_avg_ns = l->runtime_avg_ns,
		.sleep_avg_ns = l->sleep_avg_ns,
		.woken_hz = rate_hz(&l->woken, now),
		.waking_hz = rate_hz(&l->waking, now),
		.partners = l->partners / LEARN_PARTS,
	};

	l->critical = (u16)tier_criticality(view.woken_hz, view.waking_hz);
	return tier_observe(&view);
}

/* The new evidence: a sleep, or CPU time. */
static inline u32 learn_grown(struct learner *l, bool slept)
{
	u64 nr = (l->ran_ns - l->aged_ns) / LEARN_AGE_NS;

	l->aged_ns += nr * LEARN_AGE_NS;
	return slept + (u32)(nr < LEARN_AGE ? nr : LEARN_AGE);
}

/* True if an observation is due: the first tier, a changed tier, or a repeat after a long time. */
static inline bool learn_is_news(const struct learner *l, u64 now)
{
	if (!l->told_ns)
		return true;
	if (l->told_tier != l->tier)
		return now > l->told_ns + LEARN_PAUSE_NS;
	return now > l->told_ns + LEARN_REPEAT_NS;
}

/* The contrary evidence that is needed to change the tier. */
static inline u32 learn_doubt_needed(const struct learner *l)
{
	if (l->told_ns)
		return 2 * LEARN_AGE;
	return l->predicted ? LEARN_PATIENCE : 0;
}

/*
 * Judges a thread when it is mature, and then each time that it has shown as much again: the
 * judgement costs more than all other learning at a context switch.
 */
static inline bool learn_judge(struct learner *l, u32 grown, u64 now)
{
	bool was_mature = l->age >= LEARN_AGE;
	u32 observed;

	l->age += grown;
	if (l->age < (was_mature ? 2 * LEARN_AGE : LEARN_AGE))
		return false;
	if (was_mature)
		grown = l->age - LEARN_AGE;
	l->age = LEARN_AGE;
	observed = learn_observe(l, now);
	if (observed == l->tier) {
		l->doubt = 0;
		return learn_is_news(l, now);
	}
	l->doubt += grown;
	if (l->doubt < learn_doubt_needed(l))
		return false;
	l->tier = (u8)observed;
	l->doubt = 0;
	return learn_is_news(l, now);
}

/* The thread leaves its CPU, to sleep or not. True if an observation is due. */
static inline bool learn_ran(struct learner *l, u64 ran_ns, bool sleeps, u64 now)
{
	u32 grown;

	rate_event(&l->switched, now);
	l->ran_ns += ran_ns;
	l->burst_ns += ran_ns;
	grown = learn_grown(l, sleeps);
	if (sleeps)
		l->sleeps_since_ns = now;
	if (sleeps || l->burst_ns >= LEARN_BURST_NS ||
	    (!l->nr_bursts && l->age + grown >= LEARN_AGE))
		learn_take_in(l);
	return learn_judge(l, grown, now);
}

/*
 * The thread ends. Its tier is decided now, even before maturity. True if an observation is
 * due. Before maturity, the observation has the average of the thread's own bursts only,
 * else the predictions of short-lived threads would confirm themselves.
 */
static inline bool learn_ended(struct learner *l, u64 now)
{
	if (l->told_ns)
		return l->told_tier != l->tier;
	if (l->ran_ns < LEARN_LIFE_NS || !l->nr_bursts)
		return false;
	if (l->predicted && l->age < LEARN_AGE)
		l->runtime_avg_ns = (l->ran_ns - l->burst_ns) / l->nr_bursts;
	l->tier = (u8)learn_observe(l, now);
	return true;
}

/* The sleep of the thread ends. */
static inline void learn_woken(struct learner *l, u64 now)
{
	if (!l->sleeps_since_ns)
		return;
	l->slept_ns = now > l->sleeps_since_ns ? now - l->sleeps_since_ns : 0;
	if (l->slept_ns > LEARN_SLEEP_NS)
		l->slept_ns = LEARN_SLEEP_NS;
	l->sleeps_since_ns = 0;
	rate_event(&l->woken, now);
}

/* One thread wakes another. The criticality of each affects the score of the other. */
static inline void learn_wakes(struct learner *waker, struct learner *wakee, u64 now)
{
	rate_event(&waker->waking, now);
	waker->partners = (u32)tier_average(waker->partners, wakee->critical * LEARN_PARTS);
	wakee->partners = (u32)tier_average(wakee->partners, waker->critical * LEARN_PARTS);
}

/* Makes the observation to report, and notes that it was reported. */
static inline struct procdb_record learn_tell(struct learner *l, u64 now)
{
	struct procdb_record record = {
		.tier = l->tier,
		.corrects = l->told_ns ? l->told_tier + 1 : 0,
		.behaviour = {
			.runtime_avg_ns = l->runtime_avg_ns,
			.runtime_dev_ns = l->runtime_dev_ns,
			.wakeup_freq = rate_hz(&l->woken, now),
			.switch_rate = rate_hz(&l->switched, now),
		},
	};

	l->told_ns = now;
	l->told_tier = l->tier;
	return record;
}
