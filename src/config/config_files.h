/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Lists the files of a configuration in the order in which they are read: the main file,
 * then the drop-ins, sorted by name.
 */
#include "config/config.h"

struct config_files {
	char **paths;
	size_t nr;
};

/*
 * Lists the files of the system below `root`, in /etc/zernel, /run/zernel and /usr/lib/zernel.
 * A file hides the files of the same name in the later folders. A link to /dev/null also hides
 * them and is not read. On failure, `problem` describes the error.
 */
int config_files_find(const char *root, struct config_files *ret, struct config_problem *problem);

/* Lists FILE, which must exist, and the drop-ins in FILE.d. */
int config_files_beside(const char *file, struct config_files *ret, struct config_problem *problem);

void config_files_done(struct config_files *files);
