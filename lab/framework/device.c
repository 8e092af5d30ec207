/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "framework/framework.h"

#define BUFFER_BYTES (1U << 20) /* a batch, and pinned memory for results */

void device_cuda(struct rank *rank, const char *what, cudaError_t error)
{
	if (error != cudaSuccess)
		rank_fail(rank, what, cudaGetErrorString(error));
}

void device_nccl(struct rank *rank, const char *what, ncclResult_t result)
{
	if (result != ncclSuccess)
		rank_fail(rank, what, ncclGetErrorString(result));
}

void device_use(struct rank *rank)
{
	int nr_devices = 0;

	device_cuda(rank, "cudaGetDeviceCount", cudaGetDeviceCount(&nr_devices));
	if (nr_devices == 0)
		rank_fail(rank, "cudaGetDeviceCount", "no device found");
	else
		device_cuda(rank, "cudaSetDevice",
			    cudaSetDevice((int)(rank->index % (u64)nr_devices)));
}

static void comm_open(struct rank *rank)
{
	const struct framework_config *config = rank->config;

	if (config->collective_bytes == 0)
		return;
	device_cuda(rank, "cudaMalloc", cudaMalloc(&rank->gradients, config->collective_bytes));
	if (rank->index == 0)
		device_nccl(rank, "ncclGetUniqueId", ncclGetUniqueId(&rank->shared->id));
	if (rank_failed(rank))
		return;
	pthread_barrier_wait(&rank->shared->barrier);
	device_nccl(rank, "ncclCommInitRank",
		    ncclCommInitRank(&rank->comm, (int)config->ranks, rank->shared->id,
				     (int)rank->index));
}

void device_open(struct rank *rank)
{
	device_use(rank);
	if (rank_failed(rank))
		return;
	device_cuda(rank, "cudaSetDeviceFlags",
		    cudaSetDeviceFlags(workload_sync_flags(&rank->config->work)));
	device_cuda(rank, "cudaMalloc", cudaMalloc(&rank->device, BUFFER_BYTES));
	device_cuda(rank, "cudaMallocHost", cudaMallocHost(&rank->host, BUFFER_BYTES));
	comm_open(rank);
}

void device_close(struct rank *rank)
{
	if (rank->comm)
		ncclCommDestroy(rank->comm);
	if (rank->gradients)
		cudaFree(rank->gradients);
	if (rank->host)
		cudaFreeHost(rank->host);
	if (rank->device)
		cudaFree(rank->device);
}

void device_kernels(struct rank *rank, struct did *did, cudaStream_t stream, u64 nr)
{
	const struct framework_config *config = rank->config;
	void *args[] = { &rank->kernel_ns };
	const dim3 one = { 1, 1, 1 };

	for (u64 i = 0; i < nr && !rank_failed(rank); i++) {
		burn_ns(&config->work.burn, config->launch_gap_us * NSEC_PER_USEC);
		device_cuda(rank, "cudaLaunchKernel",
			    cudaLaunchKernel((const void *)vgpu_busy, one, one, args, 0, stream));
		did_cut(did);
	}
}

void device_item(struct rank *rank, struct did *did, cudaStream_t stream)
{
	if (rank_failed(rank))
		return;
	did_set(did, TRUTH_DID_DEVICE, 0);
	device_cuda(rank, "cudaMemcpyAsync",
		    cudaMemcpyAsync(rank->host, rank->device, sizeof(u64), cudaMemcpyDeviceToHost,
				    stream));
	device_cuda(rank, "cudaStreamSynchronize", cudaStreamSynchronize(stream));
	did_set(did, TRUTH_DID_COMPUTE, 0);
}

void device_drain(struct rank *rank, struct did *did)
{
	if (rank_failed(rank))
		return;
	did_set(did, TRUTH_DID_DEVICE, 0);
	device_cuda(rank, "cudaDeviceSynchronize", cudaDeviceSynchronize());
	did_set(did, TRUTH_DID_COMPUTE, 0);
}

cudaStream_t device_stream(struct rank *rank)
{
	cudaStream_t stream = NULL;

	if (!rank_failed(rank))
		device_cuda(rank, "cudaStreamCreateWithFlags",
			    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

cudaEvent_t device_event(struct rank *rank)
{
	cudaEvent_t event = NULL;

	if (!rank_failed(rank))
		device_cuda(rank, "cudaEventCreateWithFlags",
			    cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return event;
}

void device_record(struct rank *rank, cudaEvent_t event, cudaStream_t stream)
{
	if (!rank_failed(rank))
		device_cuda(rank, "cudaEventRecord", cudaEventRecord(event, stream));
}

void device_follow(struct rank *rank, cudaStream_t stream, cudaEvent_t event)
{
	if (!rank_failed(rank))
		device_cuda(rank, "cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event, 0));
}

void device_wait(struct rank *rank, struct did *did, cudaEvent_t event)
{
	if (rank_failed(rank))
		return;
	did_set(did, TRUTH_DID_DEVICE, 0);
	device_cuda(rank, "cudaEventSynchronize", cudaEventSynchronize(event));
	did_set(did, TRUTH_DID_COMPUTE, 0);
}
