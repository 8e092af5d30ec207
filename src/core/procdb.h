/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process database: what tasks of a kind were learned to be, so that the
 * next one of that kind starts right. Pure: no I/O and no clock, and all memory
 * is taken once, in procdb_new(), for the capacity the caller names.
 *
 * Once a second the caller merges what the kernel observed and calls
 * procdb_tick(), which evicts and says which predictions to set and withdraw.
 */
#include <stddef.h>

#include "abi/procdb.h"
#include "base/macros.h"
#include "core/tier_votes.h"

struct procdb_profile {
	struct procdb_key key;
	struct procdb_behaviour behaviour;
	u64 last_seen_s; /* wall time, so that the age survives a restart */
	struct tier_votes votes;
	u32 nr_observations;
	u32 owner;	/* uid of the task that made the profile known */
	bool predicted; /* the kernel holds a prediction */
	bool pending;	/* changed since the last tick */
	bool doomed;	/* chosen for eviction by the tick that is running */
	u8 pad;
};

struct procdb_config {
	u32 capacity;	/* profiles kept by a tick; twice as many fit before it */
	u32 vote_bound; /* at so many votes all are halved, so that old ones fade */
	u64 disuse_s;	/* a profile not seen for longer is evicted */
};

/*
 * No user but root keeps more than this part of the capacity: whoever makes up
 * programs loses the oldest of their own for them, and nobody else's.
 */
#define PROCDB_USER_PARTS 4

#define PROCDB_CAPACITY_MAX   (1U << 20)
#define PROCDB_VOTE_BOUND_MIN 16U

/*
 * 128 votes: however long a program was in one tier, 43 to 52 observations of
 * another (the better part of a minute) take its prediction back.
 */
#define PROCDB_CONFIG_DEFAULT                                                                      \
	((struct procdb_config){ .capacity = 4096, .vote_bound = 128, .disuse_s = 14 * 86400 })

struct procdb_summary {
	size_t nr_profiles;
	size_t nr_confident;
	u64 nr_dropped; /* observations of new kinds that found no room */
};

struct procdb;

int procdb_new(const struct procdb_config *config, struct procdb **ret_db);
void procdb_free(struct procdb *db);
DEFINE_CLEANUP(struct procdb, procdb_free);

/*
 * Adds one observation. One that corrects an earlier one of the same task moves
 * that task's vote. A profile known by this name only, as from an old file, learns
 * from it too. -ENOSPC when the key is new and no room is left before the next
 * tick; the loss is counted.
 */
int procdb_merge(struct procdb *db, const struct procdb_key *key, u32 owner,
		 const struct procdb_record *seen, u64 now_s);

/*
 * Puts back a saved profile as it was, if its key is not there yet (-EEXIST).
 * When there are more than fit, those that a tick would evict make room; but from
 * the first tick on that is the next tick's business (-ENOSPC). A last-seen time in the future
 * becomes now.
 */
int procdb_restore(struct procdb *db, const struct procdb_profile *saved, u64 now_s);

/*
 * Told of every prediction to set (`prediction` is what to expect) or to withdraw
 * (`prediction` is NULL). After a negative return the same is tried next tick.
 */
typedef int (*procdb_predict_fn)(void *userdata, const struct procdb_key *key,
				 const struct procdb_record *prediction);

/* Evicts, then brings the predictions up to date. Returns the first failure of `predict`. */
int procdb_tick(struct procdb *db, u64 now_s, procdb_predict_fn predict, void *userdata);

/* The kernel side is a new one and holds no predictions: the next tick sets them all. */
void procdb_predict_again(struct procdb *db);

/* Forgets a profile and withdraws its prediction; -ENOENT when there is none of this very key. */
int procdb_forget(struct procdb *db, const struct procdb_key *key, procdb_predict_fn predict,
		  void *userdata);

/* The profile of this executable and role, else the one of this name, else NULL. */
const struct procdb_profile *procdb_find(const struct procdb *db, const struct procdb_key *key);

/* Profiles in no particular order; NULL from the count on. Valid until the next change. */
const struct procdb_profile *procdb_at(const struct procdb *db, size_t i);

bool procdb_profile_is_confident(const struct procdb_profile *p);
struct procdb_summary procdb_summarize(const struct procdb *db);

/* The form of a key that is stored: name zero-filled, and no role without executable. */
struct procdb_key procdb_key_normalize(const struct procdb_key *key);

/* No file of ours is larger; what is, is not worth reading. */
#define PROCDB_FILE_SIZE_MAX (128UL << 20)

enum procdb_defect {
	PROCDB_FILE_SOUND = 0,
	PROCDB_FILE_TOO_SHORT,
	PROCDB_FILE_BAD_MAGIC,
	PROCDB_FILE_BAD_VERSION,
	PROCDB_FILE_FALSE_VERSION, /* a version 3 file whose version field was damaged */
	PROCDB_FILE_TRUNCATED,
	PROCDB_FILE_TRAILING, /* bytes after the last entry: versions 1 and 2 load all the same */
	PROCDB_FILE_BAD_CHECKSUM,
	PROCDB_FILE_BAD_ENTRY,
};

/* What was found in a file; what comes after a defect in the file is 0. */
struct procdb_report {
	enum procdb_defect defect;
	u8 magic[4];
	u32 version;
	u32 nr_entries; /* that the header announces */
	u32 bad_entry;
	u64 size;
	u64 size_needed; /* by so many entries of this version */
};

/* How large the file of the confident profiles will be. */
size_t procdb_encoded_size(const struct procdb *db);

/* Writes version 3. -ENOBUFS when `size` is less than procdb_encoded_size(). */
int procdb_encode(const struct procdb *db, void *buffer, size_t size, size_t *ret_size);

/*
 * Writes version 2, which the reference reads, into memory that the caller frees: the
 * confident profiles, and of one name the most observed one. *ret_nr is their number.
 */
int procdb_encode_v2(const struct procdb *db, void **ret_file, size_t *ret_size, size_t *ret_nr);

/*
 * Reads version 1, 2 or 3 into a new database, else -EBUSY. -EBADMSG leaves it empty, and
 * *ret_report (set in every case) says what is wrong with the file.
 */
int procdb_decode(struct procdb *db, const void *file, size_t size, u64 now_s,
		  struct procdb_report *ret_report);

/* The checksum that a version 3 file of this size must carry; `size` covers its header. */
u32 procdb_file_checksum(const void *file, size_t size);
