/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Macros that C lacks. They do not need libc, so that core and the lab can use them too.
 */
#include <stddef.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/*
 * Defines `free_fn`_cleanup() for a type whose free function accepts NULL. Use it once, in the
 * header of the type.
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
