/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "signals/collectives.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/time.h"

#define NCCL_INVALID_ARGUMENT 4

u64 inside_since_ns, inside_until_ns;

static void nap(u64 ns)
{
	struct timespec time = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	inside_since_ns = time_now_ns();
	if (ns)
		nanosleep(&time, NULL);
	inside_until_ns = time_now_ns();
}

int ncclAllReduce(u64 futex_ns, void *to, u64 count, int type)
{
	struct timespec time = { (time_t)(futex_ns / NSEC_PER_SEC),
				 (long)(futex_ns % NSEC_PER_SEC) };
	u32 word = 0;

	inside_since_ns = time_now_ns();
	if (futex_ns)
		syscall(SYS_futex, to ? to : &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	inside_until_ns = time_now_ns();
	return count ? 0 : NCCL_INVALID_ARGUMENT;
}

void collectives_wake(u32 *futex)
{
	syscall(SYS_futex, futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int cudaStreamSynchronize(u64 ns)
{
	nap(ns);
	return 0;
}

int MPI_Barrier(u64 ns)
{
	nap(ns);
	return 0;
}

int MPI_Comm_size(u64 comm, int *ret_size)
{
	*ret_size = (int)comm;
	return 0;
}
