/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

struct failing_dim {
	unsigned int x, y, z;
};

extern int failing_result; /* what all calls return */

int cudaLaunchKernel(const void *function, struct failing_dim grid, struct failing_dim block,
		     void **args, size_t shared, void *stream);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream);
int cudaMemsetAsync(void *to, int value, size_t size, void *stream);
int cudaDeviceSynchronize(void);
int cudaStreamSynchronize(void *stream);
int ncclAllReduce(const void *from, void *to, size_t nr, int type, int operation, void *comm,
		  void *stream);
