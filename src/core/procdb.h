/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process database: the learned profiles of programs, so that a new task starts with
 * a prediction. It is pure: no I/O and no clock. procdb_new() allocates all memory at
 * once, for the capacity that the caller chooses.
 *
 * Once per second, the caller merges the observations of the BPF programs and calls
 * procdb_tick(), which evicts profiles and sets and withdraws predictions.
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
	u32 owner;	/* uid of the first task; 0 as soon as root uses the program */
	bool predicted; /* the BPF programs have its prediction */
	bool pending;	/* changed since the last tick */
	bool doomed;	/* chosen for eviction by the current tick */
	u8 pad;
};

struct procdb_config {
	u32 capacity;	/* profiles kept by a tick; twice as many fit between two ticks */
	u32 vote_bound; /* at this number of votes all counts are halved, so that old votes fade */
	u64 disuse_s;	/* a profile not seen for longer is evicted */
};

/*
 * A user other than root keeps at most 1/PROCDB_USER_PARTS of the capacity. A user who
 * runs many different programs loses only their own oldest profiles.
 */
#define PROCDB_USER_PARTS 4

#define PROCDB_CAPACITY_MAX   (1U << 20)
#define PROCDB_VOTE_BOUND_MIN 16U

/*
 * 128 votes: no matter how long a program was in one tier, 43 to 52 observations of
 * another tier (less than one minute) withdraw its prediction.
 */
#define PROCDB_CONFIG_DEFAULT                                                                      \
	((struct procdb_config){ .capacity = 4096, .vote_bound = 128, .disuse_s = 14 * 86400 })

struct procdb_summary {
	size_t nr_profiles;
	size_t nr_confident;
	u64 nr_dropped; /* observations without a profile that found no free slot */
};

struct procdb;

int procdb_new(const struct procdb_config *config, struct procdb **ret_db);
void procdb_free(struct procdb *db);
DEFINE_CLEANUP(struct procdb, procdb_free);

/*
 * Adds one observation. An observation that corrects an earlier one of the same task
 * replaces the vote of that task. A profile that has only this name and no executable, as
 * from an old file, also learns from it. -ENOSPC if the key is new and no slot is free
 * before the next tick; the drop is counted.
 */
int procdb_merge(struct procdb *db, const struct procdb_key *key, u32 owner,
		 const struct procdb_record *seen, u64 now_s);

/*
 * Restores a saved profile. -EEXIST: a profile with this key exists. If no slot is free, the
 * profiles that a tick would evict are removed first. After the first tick, only a tick evicts,
 * so this function returns -ENOSPC instead. A last-seen time in the future becomes now.
 */
int procdb_restore(struct procdb *db, const struct procdb_profile *saved, u64 now_s);

/*
 * Called for every prediction to set, or to withdraw if `prediction` is NULL. If it returns a
 * negative value, the next tick retries.
 */
typedef int (*procdb_predict_fn)(void *userdata, const struct procdb_key *key,
				 const struct procdb_record *prediction);

/* Evicts profiles, then updates the predictions. Returns the first failure of `predict`. */
int procdb_tick(struct procdb *db, u64 now_s, procdb_predict_fn predict, void *userdata);

/* The BPF programs were loaded again and have no predictions: the next tick sets all of them. */
void procdb_predict_again(struct procdb *db);

/* Deletes a profile and withdraws its prediction. -ENOENT: no profile has exactly this key. */
int procdb_forget(struct procdb *db, const struct procdb_key *key, procdb_predict_fn predict,
		  void *userdata);

/* The profile of this executable and role, else the profile of this name, else NULL. */
const struct procdb_profile *procdb_find(const struct procdb *db, const struct procdb_key *key);

/* Profiles in no particular order; NULL after the last one. Valid until the next change. */
const struct procdb_profile *procdb_at(const struct procdb *db, size_t i);

bool procdb_profile_is_confident(const struct procdb_profile *p);
struct procdb_summary procdb_summarize(const struct procdb *db);

/* The stored form of a key: the name is zero-filled, and the role is 0 without an executable. */
struct procdb_key procdb_key_normalize(const struct procdb_key *key);

/* A database file is never larger. A larger file is not read. */
#define PROCDB_FILE_SIZE_MAX (128UL << 20)

enum procdb_defect {
	PROCDB_FILE_SOUND = 0,
	PROCDB_FILE_TOO_SHORT,
	PROCDB_FILE_BAD_MAGIC,
	PROCDB_FILE_BAD_VERSION,
	PROCDB_FILE_FALSE_VERSION, /* a version 3 file whose version field was damaged */
	PROCDB_FILE_TRUNCATED,
	PROCDB_FILE_TRAILING, /* bytes after the last entry; versions 1 and 2 load anyway */
	PROCDB_FILE_BAD_CHECKSUM,
	PROCDB_FILE_BAD_ENTRY,
};

/* The result of checking a file. Fields that are located after a defect in the file are 0. */
struct procdb_report {
	enum procdb_defect defect;
	u8 magic[4];
	u32 version;
	u32 nr_entries; /* the number of entries in the header */
	u32 bad_entry;
	u64 size;
	u64 size_needed; /* the size of a file with nr_entries entries of this version */
};

/* The size of the file, which contains the confident profiles. */
size_t procdb_encoded_size(const struct procdb *db);

/* Writes version 3. -ENOBUFS if `size` is less than procdb_encoded_size(). */
int procdb_encode(const struct procdb *db, void *buffer, size_t size, size_t *ret_size);

/*
 * Writes version 2, which the reference implementation reads, into memory that the caller frees.
 * It contains the confident profiles, and for each name only the profile with the most
 * observations. *ret_nr is the number of profiles written.
 */
int procdb_encode_v2(const struct procdb *db, void **ret_file, size_t *ret_size, size_t *ret_nr);

/*
 * Reads version 1, 2 or 3 into a new database. -EBUSY: it already had a tick. -EBADMSG: the file
 * is damaged, and the database stays unchanged. *ret_report is always set and describes the defect.
 */
int procdb_decode(struct procdb *db, const void *file, size_t size, u64 now_s,
		  struct procdb_report *ret_report);

/* The checksum that a version 3 file of this size must have. `size` includes the header. */
u32 procdb_file_checksum(const void *file, size_t size);
