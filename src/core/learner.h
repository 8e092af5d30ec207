/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is learned of one thread: running averages of what it does, the tier it
 * has by them, and when that is worth telling. The kernel holds one for every
 * thread, in its task storage.
 *
 * Evidence is counted in sleeps, and in milliseconds on a CPU for who does not
 * sleep. LEARN_AGE of it makes the averages mature: the tier is what they say. A
 * prediction is where a thread starts, with its tier and its averages. The tier
 * stands against contrary averages, such as those of a program that is still being
 * linked, for LEARN_PATIENCE more. From then on a change takes LEARN_AGE. The
 * averages give way to the thread's own faster, so that they are its own when they
 * are mature: each burst until then takes half of what is left of the prediction.
 */
#include <stddef.h>
#include "abi/procdb.h"
#include "core/comm.h"
#include "core/tier.h"

#define LEARN_AGE	8
#define LEARN_PATIENCE	24
/* So much time on a CPU is worth as much as a sleep. */
#define LEARN_AGE_NS	NSEC_PER_MSEC
/* A longer burst is two: what it does must show while it does it. */
#define LEARN_BURST_NS	(10 * NSEC_PER_MSEC)
/* A longer sleep counts as this, or the idle would be forgiven too much work. */
#define LEARN_SLEEP_NS	(100 * NSEC_PER_MSEC)
/* A life that ends before it is mature was long enough to be learned from. */
#define LEARN_LIFE_NS	(NSEC_PER_MSEC / 2)
/* Nobody changes its vote more often than this, */
#define LEARN_PAUSE_NS	NSEC_PER_SEC
/* and who lives long repeats it, so that its profile is known to be in use. */
#define LEARN_REPEAT_NS (3600 * NSEC_PER_SEC)
/* Partners' criticality is averaged in parts of one. */
#define LEARN_PARTS	64

/* How often something happens: the average time from one to the next. */
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
	u64 aged_ns;	     /* of it, what has counted for the age */
	u64 burst_ns;	     /* since the last sleep, or since it was last taken in */
	u64 slept_ns;	     /* before this burst */
	u64 sleeps_since_ns; /* 0 unless it sleeps */
	u64 runtime_avg_ns;  /* 0 until the first burst was taken in, unless predicted */
	u64 runtime_dev_ns;
	u64 sleep_avg_ns;
	u64 told_ns;  /* when it was last observed, or 0 */
	u32 partners; /* in LEARN_PARTS */
	u32 owner;
	u32 age;
	u32 doubt; /* evidence against the tier, in the measure of the age */
	u8 role;
	u8 tier;
	u8 told_tier;
	u8 predicted;  /* it began with what was learned of others like it */
	u16 critical;  /* tier_criticality() when it was last judged */
	u16 nr_bursts; /* taken into the averages; no more than LEARN_AGE are counted */
};
_Static_assert(sizeof(struct learner) == 152, "no hidden padding");

/* Brings one more word into the identity of an executable. Never 0. */
static inline u64 learn_identity(u64 identity, u64 word)
{
	return comm_mix(identity, word);
}

static inline void rate_event(struct rate *rate, u64 now)
{
	u64 passed = now - rate->last_ns;

	/* Clocks of two CPUs may differ a little. */
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
	/* What stopped happening is rare, whatever it was. */
	if (now > rate->last_ns && now - rate->last_ns > interval)
		interval = now - rate->last_ns;
	return NSEC_PER_SEC / interval;
}

/* Bursts end at LEARN_BURST_NS: a larger value, as in an imported file, would take long to fade. */
static inline u64 learn_predicted_ns(u64 ns)
{
	return ns < LEARN_BURST_NS ? ns : LEARN_BURST_NS;
}

/* A thread of this kind begins, as what was learned of others like it. */
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

/* A prediction fades by halves while the thread is young. */
static inline u64 learn_average(const struct learner *l, u64 old, u64 fresh)
{
	if (l->predicted && l->age < LEARN_AGE)
		return old / 2 + fresh / 2;
	return tier_average(old, fresh);
}

/* The burst so far becomes part of the averages. */
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

/* How much the evidence grew: a sleep, or time on a CPU. */
static inline u32 learn_grown(struct learner *l, bool slept)
{
	u64 nr = (l->ran_ns - l->aged_ns) / LEARN_AGE_NS;

	l->aged_ns += nr * LEARN_AGE_NS;
	return slept + (u32)(nr < LEARN_AGE ? nr : LEARN_AGE);
}

/* True when there is something to tell: a first tier, another one, or the same after long. */
static inline bool learn_is_news(const struct learner *l, u64 now)
{
	if (!l->told_ns)
		return true;
	if (l->told_tier != l->tier)
		return now > l->told_ns + LEARN_PAUSE_NS;
	return now > l->told_ns + LEARN_REPEAT_NS;
}

/* How much contrary evidence changes the tier. */
static inline u32 learn_doubt_needed(const struct learner *l)
{
	if (l->told_ns)
		return LEARN_AGE;
	return l->predicted ? LEARN_PATIENCE : 0;
}

static inline bool learn_judge(struct learner *l, u32 grown, u64 now)
{
	u32 observed;

	if (l->age < LEARN_AGE)
		l->age += grown;
	if (l->age < LEARN_AGE)
		return false;
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

/* It leaves its CPU, to sleep or not. True when it is to be told. */
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
 * Its life ends: however young, that is what it was. True when it is to be told. Its
 * own bursts are told, or predictions of short lives would confirm themselves.
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

/* It ends a sleep. */
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

/* One thread wakes another: each is judged by the other as well. */
static inline void learn_wakes(struct learner *waker, struct learner *wakee, u64 now)
{
	rate_event(&waker->waking, now);
	waker->partners = (u32)tier_average(waker->partners, wakee->critical * LEARN_PARTS);
	wakee->partners = (u32)tier_average(wakee->partners, waker->critical * LEARN_PARTS);
}

/* What is told of it, and that it was told. */
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
