/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#include "abi/types.h"

/* fork() whose child is killed when the calling thread ends for any reason. */
pid_t fork_tied(void);

/* Zeroed memory that forked children share. NULL on failure. */
void *shared_alloc(size_t bytes);

/* Futex on memory that processes may share; timeout_ns 0: no timeout. */
void futex_wait(u32 *word, u32 expected, u64 timeout_ns);
void futex_wake_all(u32 *word);
