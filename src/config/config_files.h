/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files that make up a configuration, in the order in which they are read: the main
 * file, then the drop-ins in the order of their names.
 */
#include "config/config.h"

struct config_files {
	char **paths;
	size_t nr;
};

/*
 * Those of the system below `root`, in /etc/zernel, /run/zernel and /usr/lib/zernel. A file
 * hides the files of the same name in the folders after its own; a link to /dev/null does so
 * without being read. On failure `problem` says why.
 */
int config_files_find(const char *root, struct config_files *ret, struct config_problem *problem);

/* FILE, which must be there, and what is in FILE.d. */
int config_files_beside(const char *file, struct config_files *ret, struct config_problem *problem);

void config_files_done(struct config_files *files);
