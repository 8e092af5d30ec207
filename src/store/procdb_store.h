/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The process database on disk. */
#include "core/procdb.h"

#define PROCDB_STATE_DIRECTORY "/var/lib/zernel"
#define PROCDB_FILE_NAME       "procdb"

/*
 * Whoever means to write the file holds its lock; closing *ret_fd gives it back.
 * -EBUSY: somebody else has it.
 */
int procdb_store_lock(const char *path, int *ret_fd);

/*
 * Reads any version into a new database. -ENOENT: there is no file. -EBADMSG: it cannot be
 * used, and *ret_report says why.
 */
int procdb_store_load(struct procdb *db, const char *path, u64 now_s,
		      struct procdb_report *ret_report);

/* Old or new content, whole, whatever happens meanwhile. */
int procdb_store_save(const struct procdb *db, const char *path);

/* The same, as version 2: what the reference reads. *ret_nr is the number of profiles in it. */
int procdb_store_save_v2(const struct procdb *db, const char *path, size_t *ret_nr);
