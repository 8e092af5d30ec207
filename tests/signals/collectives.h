/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Collectives and syncs that take as long as the caller says, by the names of three runtimes.
 * The arguments that probes look at are where the runtimes have them.
 */
#include "abi/types.h"

/* Waits that long on a futex. It fails without a count. */
int ncclAllReduce(u64 futex_ns, void *to, u64 count, int type);
int cudaStreamSynchronize(u64 ns);
int MPI_Barrier(u64 ns);
/* The size is the number of the communicator. */
int MPI_Comm_size(u64 comm, int *ret_size);
