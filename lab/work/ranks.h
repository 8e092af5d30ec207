/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "abi/types.h"

#define RANKS_MAX 64

/*
 * Runs `run` in one child process for each rank and waits for them. When a rank fails,
 * the remaining ranks are killed. Returns 0 or a negative errno; `run` prints its own
 * errors. *ret_rank0 is the process of rank 0.
 */
int ranks_run(u64 nr, int (*run)(void *arg, u64 rank), void *arg, pid_t *ret_rank0);

/* Initializes a barrier that all ranks share. */
void ranks_barrier_init(pthread_barrier_t *barrier, u64 nr);
