/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Learning as the daemon does it: the process database, kept in a file, fed by
 * what the kernel side observes, and back to it as predictions.
 */
#include "base/macros.h"
#include "collect/kernel.h"
#include "core/procdb.h"

struct learning;

/*
 * Loads the database from `directory`, which is made if need be. What cannot be read
 * is set aside and reported; then, and without a file, the database is empty. Where
 * nothing can be kept, since somebody else has the database or the directory cannot
 * be written, that is reported, and learning lasts as long as the program.
 */
int learning_new(const char *directory, u32 nr_profiles, struct learning **ret);

/* Saves what is not saved yet. */
struct learning *learning_free(struct learning *learning);
DEFINE_CLEANUP(struct learning, learning_free);

/* From now on with this kernel side, which gets all predictions at once. */
int learning_attach(struct learning *learning, struct kernel *kernel);

/*
 * Takes in what was observed; once a second brings predictions up to date; saves now and
 * then. Without a kernel side it only saves.
 */
void learning_poll(struct learning *learning);

/* The kernel side will be gone: takes in what is left in it. */
void learning_detach(struct learning *learning);

/* Now, if anything changed, instead of within the minute. */
void learning_save(struct learning *learning);

/* The database as it is now, for looking at it only. */
const struct procdb *learning_database(const struct learning *learning);
/* Observations taken in since the start. */
u64 learning_nr_observations(const struct learning *learning);

/* Adds a profile that is not known yet (-EEXIST). */
int learning_import(struct learning *learning, const struct procdb_profile *profile);
int learning_forget(struct learning *learning, const struct procdb_key *key);
