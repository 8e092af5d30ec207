/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#include "abi/types.h"

/* fork() whose child is killed when the calling thread dies, however it dies. */
pid_t fork_tied(void);

/* Zeroed memory that forked children share. NULL when there is none. */
void *shared_alloc(size_t bytes);

/* futex on memory that may be shared between processes; timeout_ns 0 waits for ever. */
void futex_wait(u32 *word, u32 expected, u64 timeout_ns);
void futex_wake_all(u32 *word);
