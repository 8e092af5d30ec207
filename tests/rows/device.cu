/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A CUDA program for machines without a GPU: each of its calls fails. */
#include <cuda_runtime.h>
#include <stdio.h>

__global__ void add(int *number)
{
	*number += 1;
}

/* Calls everything when a line arrives. Prints the number of calls that succeeded. */
int main(void)
{
	int *number = nullptr, value = 0, nr_ok = 0;
	char line[16];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		nr_ok = cudaMalloc(&number, sizeof(*number)) == cudaSuccess;
		nr_ok += cudaMemcpy(number, &value, sizeof(value), cudaMemcpyHostToDevice) == cudaSuccess;
		add<<<1, 1>>>(number);
		nr_ok += cudaGetLastError() == cudaSuccess;
		nr_ok += cudaDeviceSynchronize() == cudaSuccess;
		nr_ok += cudaStreamQuery(0) == cudaSuccess;
		printf("%d\n", nr_ok);
		fflush(stdout);
	}
	return 0;
}
