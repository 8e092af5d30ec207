/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which files a process has mapped, from /proc/PID/maps. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "abi/types.h"

#define MAPS_PATH_BYTES 4096

struct mapping {
	u64 start, end;
	u32 major, minor;
	u64 inode;
	bool is_code;
	char path[MAPS_PATH_BYTES]; /* of the process's root, without " (deleted)" */
};

/*
 * One line, without its newline. -ENOENT for what is not from a file, -EINVAL for
 * what is no such line at all.
 */
int maps_parse_line(const char *line, size_t length, struct mapping *ret);

/* Returns below 0 to stop. */
typedef int (*maps_fn)(void *ctx, const struct mapping *mapping);

/*
 * Calls `fn` for each mapping of a file that process `pid` below
 * `proc` (normally "/proc") has. -ESRCH when there is no such process.
 */
int maps_read(const char *proc, pid_t pid, maps_fn fn, void *ctx);
