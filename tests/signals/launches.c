/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Launches whose duration the caller sets; the runtime's launch calls the driver's. The launch
 * takes its own time too: it is shorter than what a probe on the call measures.
 */
#include <stddef.h>
#include <time.h>
#include "abi/types.h"
#include "base/time.h"

int cudaLaunchKernel(u64 ns);
int cuLaunchKernel(u64 ns);
int cudaDeviceSynchronize(void);
int cudaHostRegister(void *memory, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *memory);
extern u64 launch_inner_ns;
int runtime_launch(u64 ns) __attribute__((alias("cudaLaunchKernel")));
int driver_launch(u64 ns) __attribute__((alias("cuLaunchKernel")));

u64 launch_inner_ns; /* of the latest launch of the runtime */

int cuLaunchKernel(u64 ns)
{
	u64 end = time_now_ns() + ns;

	while (time_now_ns() < end)
		;
	return 0;
}

/* Volatile, so that the compiler emits a call. */
static int (*volatile driver)(u64 ns) = cuLaunchKernel;

int cudaLaunchKernel(u64 ns)
{
	u64 begin = time_now_ns();
	int err = driver(ns);

	launch_inner_ns = time_now_ns() - begin;
	return err ? -err : 0;
}

int cudaDeviceSynchronize(void)
{
	return 0;
}

/* Memory exists only in the accounts. */
int cudaHostRegister(void *memory, size_t bytes, unsigned int flags)
{
	return 0;
}

int cudaHostUnregister(void *memory)
{
	return 0;
}
