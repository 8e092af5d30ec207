/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Ownership with the cleanup attribute: the declaration of a variable shows that it owns
 * its value. TAKE_PTR() and TAKE_FD() pass the ownership on.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/macros.h"

#define CLEANUP_FREE CLEANUP(cleanup_free)
#define CLEANUP_FD   CLEANUP(cleanup_fd)
#define CLEANUP_DIR  CLEANUP(cleanup_dir)

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int *take_from = &(fd);                                                            \
		int taken = *take_from;                                                            \
		*take_from = -EBADF;                                                               \
		taken;                                                                             \
	})

/* `variable` can point to a pointer of any type, so the value is copied, not cast. */
static inline void cleanup_free(void *variable)
{
	void *memory;

	memcpy(&memory, variable, sizeof(memory));
	free(memory);
}

/* Preserves errno, so that the caller can still report its failure. */
static inline void cleanup_fd(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void cleanup_dir(DIR *const *dir)
{
	if (*dir)
		closedir(*dir);
}
