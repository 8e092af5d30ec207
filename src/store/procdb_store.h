/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The file of the process database. */
#include "core/procdb.h"

#define PROCDB_STATE_DIRECTORY "/var/lib/zernel"
#define PROCDB_FILE_NAME       "procdb"

/*
 * Takes the lock of the file. A writer must hold it. Closing *ret_fd releases it. Returns
 * -EBUSY if another process holds the lock.
 */
int procdb_store_lock(const char *path, int *ret_fd);

/*
 * Reads a file of any version into a new database. Returns -ENOENT if the file does not exist.
 * Returns -EBADMSG if the file is invalid; then *ret_report says why.
 */
int procdb_store_load(struct procdb *db, const char *path, u64 now_s,
		      struct procdb_report *ret_report);

/* Saves atomically: after a crash, the file has the complete old or the complete new content. */
int procdb_store_save(const struct procdb *db, const char *path);

/*
 * Saves as version 2, which the reference reads. *ret_nr is the number of profiles in the file.
 */
int procdb_store_save_v2(const struct procdb *db, const char *path, size_t *ret_nr);
