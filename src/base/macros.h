/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What C lacks. Nothing here needs libc, so that core and the lab may use it as well.
 */
#include <stddef.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/*
 * Makes `free_fn`_cleanup() for a type with a free function that accepts NULL. Stands in the
 * header of the type, once.
 */
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
