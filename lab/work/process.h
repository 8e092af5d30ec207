/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#include "abi/types.h"

/* fork() whose child is killed when the calling thread ends for any reason. */
pid_t fork_tied(void);

/* Zeroed memory that forked children share. NULL on failure. */
void *shared_alloc(size_t bytes);

/*
 * Memory that separate processes share by a file. The first of them creates the file and fills the
 * zeroed memory by `init`. NULL on failure.
 */
void *shared_join(const char *path, size_t bytes, void (*init)(void *map, const void *arg),
		  const void *arg);

/* Futex on memory that processes may share; timeout_ns 0: no timeout. */
void futex_wait(u32 *word, u32 expected, u64 timeout_ns);
void futex_wake_all(u32 *word);
