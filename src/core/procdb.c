/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/procdb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/procdb_index.h"

/*
 * The longest wall time between two calls. A longer time, or a time that goes backwards,
 * means that the clock was set or the machine was suspended. The ages of profiles then
 * stay as they are. Otherwise a machine that boots with a wrong clock would evict all
 * profiles when the clock is set.
 */
#define CLOCK_STEP_MAX_S 3600

int procdb_new(const struct procdb_config *config, struct procdb **ret_db)
{
	struct procdb *db;
	u32 nr_cells = 1;

	if (config->capacity == 0 || config->capacity > PROCDB_CAPACITY_MAX ||
	    config->vote_bound < PROCDB_VOTE_BOUND_MIN)
		return -EINVAL;

	db = calloc(1, sizeof(*db));
	if (!db)
		return -ENOMEM;
	db->config = *config;
	db->nr_slots = 2 * config->capacity;
	while (nr_cells < 2 * db->nr_slots)
		nr_cells *= 2;
	db->index_mask = nr_cells - 1;
	db->profiles = calloc(db->nr_slots, sizeof(*db->profiles));
	db->index = calloc(nr_cells, sizeof(*db->index));
	db->ranks = calloc(db->nr_slots, sizeof(*db->ranks));
	if (!db->profiles || !db->index || !db->ranks) {
		procdb_free(db);
		return -ENOMEM;
	}
	*ret_db = db;
	return 0;
}

void procdb_free(struct procdb *db)
{
	if (!db)
		return;
	free(db->ranks);
	free(db->index);
	free(db->profiles);
	free(db);
}

static void clock_advance(struct procdb *db, u64 now_s)
{
	u64 before = db->now_s;

	db->now_s = now_s;
	if (before == 0 || (now_s >= before && now_s - before <= CLOCK_STEP_MAX_S))
		return;
	for (u32 i = 0; i < db->nr_profiles; i++) {
		u64 age = before - db->profiles[i].last_seen_s;

		db->profiles[i].last_seen_s = age < now_s ? now_s - age : 0;
	}
}

static void votes_fade(struct tier_votes *votes, u32 bound)
{
	while (tier_votes_total(votes) >= bound)
		for (int i = 0; i < TIER_NR; i++)
			votes->nr[i] /= 2;
}

static void behaviour_merge(struct procdb_behaviour *b, const struct procdb_behaviour *seen)
{
	b->runtime_avg_ns = tier_average(b->runtime_avg_ns, seen->runtime_avg_ns);
	b->runtime_dev_ns = tier_average(b->runtime_dev_ns, seen->runtime_dev_ns);
	b->wakeup_freq = tier_average(b->wakeup_freq, seen->wakeup_freq);
	b->switch_rate = tier_average(b->switch_rate, seen->switch_rate);
}

/* A later vote of the same task replaces its earlier one. False if the earlier vote has faded. */
static bool vote_take_back(struct tier_votes *votes, u32 corrects)
{
	u32 *nr;

	if (corrects == 0)
		return false;
	nr = &votes->nr[tier_of(corrects - 1)];
	if (*nr == 0)
		return false;
	--*nr;
	return true;
}

static void profile_observe(struct procdb *db, struct procdb_profile *p,
			    const struct procdb_record *seen)
{
	if (p->nr_observations == 0)
		p->behaviour = seen->behaviour;
	else
		behaviour_merge(&p->behaviour, &seen->behaviour);
	if (!vote_take_back(&p->votes, seen->corrects) && p->nr_observations < ~0U)
		p->nr_observations++;
	tier_vote(&p->votes, seen->tier);
	votes_fade(&p->votes, db->config.vote_bound);
	p->last_seen_s = db->now_s;
	p->pending = true;
}

/* A task without a profile of its executable is predicted by name, so that profile learns too. */
static void name_observe(struct procdb *db, const struct procdb_key *key,
			 const struct procdb_record *seen)
{
	struct procdb_key name = *key;
	s64 position;

	name.exe_id = 0;
	name.role = 0;
	position = procdb_index_find(db, &name);
	if (position >= 0)
		profile_observe(db, &db->profiles[position], seen);
}

int procdb_merge(struct procdb *db, const struct procdb_key *key, u32 owner,
		 const struct procdb_record *seen, u64 now_s)
{
	struct procdb_key normal = procdb_key_normalize(key);
	s64 position = procdb_index_find(db, &normal);
	struct procdb_profile *p;

	clock_advance(db, now_s);
	if (position >= 0) {
		p = &db->profiles[position];
	} else if (db->nr_profiles < db->nr_slots) {
		p = procdb_index_add(db, &normal);
		p->owner = owner;
	} else {
		db->nr_dropped++;
		return -ENOSPC;
	}

	/* A program that root uses belongs to root, even if another user ran it first. */
	if (owner == 0)
		p->owner = 0;
	profile_observe(db, p, seen);
	if (normal.exe_id)
		name_observe(db, &normal, seen);
	return 0;
}

int procdb_restore(struct procdb *db, const struct procdb_profile *saved, u64 now_s)
{
	struct procdb_key key = procdb_key_normalize(&saved->key);
	struct procdb_profile *p;

	clock_advance(db, now_s);
	if (procdb_index_find(db, &key) >= 0)
		return -EEXIST;
	if (db->nr_profiles == db->nr_slots && db->ticked)
		return -ENOSPC;
	if (db->nr_profiles == db->nr_slots) {
		procdb_doom(db);
		for (u32 i = db->nr_profiles; i-- > 0;)
			if (db->profiles[i].doomed)
				procdb_index_remove(db, i);
	}

	p = procdb_index_add(db, &key);
	p->behaviour = saved->behaviour;
	p->votes = saved->votes;
	votes_fade(&p->votes, db->config.vote_bound);
	p->nr_observations = saved->nr_observations;
	p->owner = saved->owner;
	p->last_seen_s = saved->last_seen_s < now_s ? saved->last_seen_s : now_s;
	p->pending = true;
	return 0;
}

static int prediction_withdraw(struct procdb_profile *p, procdb_predict_fn predict, void *userdata)
{
	int r = p->predicted ? predict(userdata, &p->key, NULL) : 0;

	if (r >= 0)
		p->predicted = false;
	return r;
}

static int prediction_update(struct procdb_profile *p, procdb_predict_fn predict, void *userdata)
{
	struct procdb_record prediction = { .tier = (u8)tier_dominant(&p->votes),
					    .behaviour = p->behaviour };
	int r;

	if (procdb_profile_is_confident(p)) {
		r = predict(userdata, &p->key, &prediction);
		if (r >= 0)
			p->predicted = true;
	} else {
		r = prediction_withdraw(p, predict, userdata);
	}
	if (r >= 0)
		p->pending = false;
	return r;
}

int procdb_tick(struct procdb *db, u64 now_s, procdb_predict_fn predict, void *userdata)
{
	int first = 0;

	clock_advance(db, now_s);
	db->ticked = true;
	procdb_doom(db);
	/* Backwards: procdb_index_remove() moves only profiles that are already done. */
	for (u32 i = db->nr_profiles; i-- > 0;) {
		struct procdb_profile *p = &db->profiles[i];
		int r = 0;

		if (p->doomed) {
			r = prediction_withdraw(p, predict, userdata);
			if (r >= 0)
				procdb_index_remove(db, i);
		} else if (p->pending) {
			r = prediction_update(p, predict, userdata);
		}
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

void procdb_predict_again(struct procdb *db)
{
	for (u32 i = 0; i < db->nr_profiles; i++) {
		db->profiles[i].predicted = false;
		db->profiles[i].pending = true;
	}
}

int procdb_forget(struct procdb *db, const struct procdb_key *key, procdb_predict_fn predict,
		  void *userdata)
{
	struct procdb_key normal = procdb_key_normalize(key);
	s64 position = procdb_index_find(db, &normal);
	int r;

	if (position < 0)
		return -ENOENT;
	r = prediction_withdraw(&db->profiles[position], predict, userdata);
	if (r >= 0)
		procdb_index_remove(db, (u32)position);
	return r;
}

const struct procdb_profile *procdb_find(const struct procdb *db, const struct procdb_key *key)
{
	struct procdb_key normal = procdb_key_normalize(key);
	s64 position = procdb_index_find(db, &normal);

	if (position < 0 && normal.exe_id) {
		normal.exe_id = 0;
		normal.role = 0;
		position = procdb_index_find(db, &normal);
	}
	return position < 0 ? NULL : &db->profiles[position];
}

const struct procdb_profile *procdb_at(const struct procdb *db, size_t i)
{
	return i < db->nr_profiles ? &db->profiles[i] : NULL;
}

bool procdb_profile_is_confident(const struct procdb_profile *p)
{
	return tier_is_confident(&p->votes, p->nr_observations, p->behaviour.runtime_avg_ns,
				 p->behaviour.runtime_dev_ns);
}

struct procdb_summary procdb_summarize(const struct procdb *db)
{
	struct procdb_summary s = { .nr_profiles = db->nr_profiles, .nr_dropped = db->nr_dropped };

	for (u32 i = 0; i < db->nr_profiles; i++)
		s.nr_confident += procdb_profile_is_confident(&db->profiles[i]);
	return s;
}
