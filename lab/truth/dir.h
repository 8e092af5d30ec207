/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "truth/truth.h"

/* All truth logs of a run. */
struct truth_dir {
	struct truth_file *files;
	char **names; /* file names without the directory */
	u64 nr_files;
	u64 nr_unreadable; /* files that are not a valid truth log; each is reported on stderr */
};

int truth_dir_read(const char *path, struct truth_dir *ret);
void truth_dir_done(struct truth_dir *dir);

/* A record and its process, for queries over several files. */
struct truth_event {
	u32 pid;
	struct truth_record rec;
};

/* The records of one kind over all files, unsorted. The caller frees. */
int truth_dir_collect(const struct truth_dir *dir, enum truth_kind kind,
		      struct truth_event **ret_events, u64 *ret_nr);
