/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Ownership by the cleanup attribute: a variable that owns something says so
 * where it is declared, and hands it on with TAKE_PTR() or TAKE_FD().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/macros.h"

#define CLEANUP_FREE CLEANUP(cleanup_free)
#define CLEANUP_FD   CLEANUP(cleanup_fd)

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int *take_from = &(fd);                                                            \
		int taken = *take_from;                                                            \
		*take_from = -EBADF;                                                               \
		taken;                                                                             \
	})

/* The variable may be a pointer to anything, so its value is copied, not cast. */
static inline void cleanup_free(void *variable)
{
	void *memory;

	memcpy(&memory, variable, sizeof(memory));
	free(memory);
}

/* Keeps errno, so that a caller can still report the failure that led here. */
static inline void cleanup_fd(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
