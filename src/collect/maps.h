/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The files that a process has mapped, from /proc/PID/maps. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "abi/types.h"

#define MAPS_PATH_BYTES 4096

struct mapping {
	u64 start, end;
	u32 major, minor;
	u64 inode;
	u64 offset; /* of its first byte in the file */
	bool is_code;
	bool is_writable;
	char path[MAPS_PATH_BYTES]; /* in the root of the process, without " (deleted)" */
};

/*
 * Parses one line without its newline. -ENOENT: the mapping has no file. -EINVAL: not a
 * line of a maps file.
 */
int maps_parse_line(const char *line, size_t length, struct mapping *ret);

/* Returns a negative value to stop. */
typedef int (*maps_fn)(void *ctx, const struct mapping *mapping);

/*
 * Calls `fn` for each file mapping of process `pid` below `proc` (normally "/proc").
 * -ESRCH: the process does not exist.
 */
int maps_read(const char *proc, pid_t pid, maps_fn fn, void *ctx);
