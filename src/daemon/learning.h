/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The learning part of the daemon. It keeps the process database in a file, adds the
 * observations of the BPF programs to it, and sends predictions back to them.
 */
#include "base/macros.h"
#include "collect/kernel.h"
#include "core/procdb.h"

struct learning;

/*
 * Loads the database from `directory`, which is created if it does not exist. An invalid file is
 * renamed and reported. In this case, and if no file exists, the database is empty. If another
 * process uses the database or the directory is not writable, this is reported, and profiles
 * are lost when the program ends.
 */
int learning_new(const char *directory, u32 nr_profiles, struct learning **ret);

/* Saves unsaved changes. */
struct learning *learning_free(struct learning *learning);
DEFINE_CLEANUP(struct learning, learning_free);

/* Starts to learn from `kernel` and sends all predictions to it. */
int learning_attach(struct learning *learning, struct kernel *kernel);

/*
 * Reads observations, updates predictions once a second, and saves once a minute. Without an
 * attached kernel, it does not read observations and does not send predictions.
 */
void learning_poll(struct learning *learning);

/* Call it before the kernel is freed. Reads the remaining observations and saves. */
void learning_detach(struct learning *learning);

/* Saves now if anything changed. */
void learning_save(struct learning *learning);

/* The current database, read-only. */
const struct procdb *learning_database(const struct learning *learning);
/* The number of observations since the start. */
u64 learning_nr_observations(const struct learning *learning);

/* Adds a profile. Returns -EEXIST if a profile with this key exists. */
int learning_import(struct learning *learning, const struct procdb_profile *profile);
int learning_forget(struct learning *learning, const struct procdb_key *key);
