/* SPDX-License-Identifier: GPL-2.0-only */
/* Launches that take as long as they are told to, the runtime's through the driver. */
#include <time.h>
#include "abi/types.h"

int cudaLaunchKernel(u64 ns);
int cuLaunchKernel(u64 ns);
int runtime_launch(u64 ns) __attribute__((alias("cudaLaunchKernel")));
int driver_launch(u64 ns) __attribute__((alias("cuLaunchKernel")));

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

int cuLaunchKernel(u64 ns)
{
	u64 end = now_ns() + ns;

	while (now_ns() < end)
		;
	return 0;
}

/* Volatile, so that it is a call. */
static int (*volatile driver)(u64 ns) = cuLaunchKernel;

int cudaLaunchKernel(u64 ns)
{
	int err = driver(ns);

	return err ? -err : 0;
}
