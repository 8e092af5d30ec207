/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Launches whose duration the caller sets; the runtime's launch calls the driver's. */
#include <time.h>
#include "abi/types.h"
#include "base/time.h"

int cudaLaunchKernel(u64 ns);
int cuLaunchKernel(u64 ns);
int runtime_launch(u64 ns) __attribute__((alias("cudaLaunchKernel")));
int driver_launch(u64 ns) __attribute__((alias("cuLaunchKernel")));

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
	int err = driver(ns);

	return err ? -err : 0;
}
