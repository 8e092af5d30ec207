/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of CUDA and NCCL that give `failing_result` and do nothing. */
#include <stddef.h>
#include "signals/failing.h"

int failing_result;

int cudaLaunchKernel(const void *function, struct failing_dim grid, struct failing_dim block,
		     void **args, size_t shared, void *stream)
{
	return failing_result;
}

int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	return failing_result;
}

int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream)
{
	return failing_result;
}

int cudaMemsetAsync(void *to, int value, size_t size, void *stream)
{
	return failing_result;
}

int cudaDeviceSynchronize(void)
{
	return failing_result;
}

int cudaStreamSynchronize(void *stream)
{
	return failing_result;
}

int ncclAllReduce(const void *from, void *to, size_t nr, int type, int operation, void *comm,
		  void *stream)
{
	return failing_result;
}
