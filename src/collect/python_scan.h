/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the CPython interpreter of a process: a libpython that it has mapped, or its executable,
 * when the interpreter is linked into it. Only zernel-discover calls python_scan(): the files
 * belong to the user of the process. No memory of the process is read.
 */
#include <sys/types.h>
#include "core/python.h"

struct python_scan {
	u64 runtime; /* the address of the runtime in the process */
	u32 version; /* for example 0x030d05f0 */
	u32 pad;
	struct python_offsets offsets;
};

/* What a scan has read, for the quota of the user of the process. */
struct python_cost {
	u64 nr_files;
	u64 nr_bytes;
};

/*
 * `proc` is normally "/proc". Adds to *cost, also if it fails. -ENOENT: the process has no
 * interpreter, or one without a symbol and a section for its runtime. -ENOTSUP: its version is not
 * supported.
 */
int python_scan(const char *proc, pid_t pid, struct python_cost *cost, struct python_scan *ret);

bool python_scan_is_valid(const struct python_scan *scan);
