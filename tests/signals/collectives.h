/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Collectives and syncs whose duration the caller sets, with the names of three runtimes.
 * The arguments that probes read have the same position as in the runtimes.
 */
#include "abi/types.h"

/* Waits for that long on a futex: the one at `to`, unless it is NULL. Fails if the count is 0. */
int ncclAllReduce(u64 futex_ns, void *to, u64 count, int type);
/* Wakes the thread that waits on that futex. */
void collectives_wake(u32 *futex);
int cudaStreamSynchronize(u64 ns);
int MPI_Barrier(u64 ns);
/* The size is the number of the communicator. */
int MPI_Comm_size(u64 comm, int *ret_size);

/*
 * When the code of the latest of these calls began and ended: after the probe on its entry, and
 * before the probe on its return.
 */
extern u64 inside_since_ns, inside_until_ns;
