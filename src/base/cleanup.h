/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * Ownership by the cleanup attribute: a variable that owns something says so
 * where it is declared, and hands it on with TAKE_PTR() or TAKE_FD().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define CLEANUP_FREE CLEANUP(cleanup_free)
#define CLEANUP_FD   CLEANUP(cleanup_fd)

/* Makes `free_fn`_cleanup() for a type with a free function that accepts NULL. */
#define DEFINE_CLEANUP(type, free_fn)                                                              \
	static inline void free_fn##_cleanup(type **object)                                        \
	{                                                                                          \
		free_fn(*object);                                                                  \
	}                                                                                          \
	struct cleanup_needs_semicolon

#define TAKE_PTR(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) *take_from = &(pointer);                                       \
		__typeof__(pointer) taken = *take_from;                                            \
		*take_from = NULL;                                                                 \
		taken;                                                                             \
	})

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
