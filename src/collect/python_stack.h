/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the current stack of one thread of a CPython interpreter, also while the thread sleeps or
 * is stopped, in the memory of its process. Only zernel-discover calls python_stack_scan(): a read
 * of such memory can hang.
 */
#include <sys/types.h>
#include "core/python_place.h"

struct python_stack_scan {
	u32 uid; /* of the process: all three user IDs are this one */
	u32 nr;
	u32 is_cut;				       /* the outermost frames are missing */
	struct python_place places[PYTHON_FRAMES_MAX]; /* innermost first; no name: not known */
};

/*
 * -ENOENT and -ENOTSUP: as python_scan(). -EACCES: the process has rights of another user, or no
 * debugger of its user may read its memory. -ESRCH: the interpreter does not know the thread.
 * -EAGAIN: the thread runs, and its stack changed during each read.
 */
int python_stack_scan(const char *proc, pid_t tid, struct python_stack_scan *ret);
