/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CUDA graphs: forward, backward and the reduction of gradients are captured once. After
 * that, one launch is all of them, and no call shows the collective again.
 */
#include "framework/framework.h"

static cudaGraphExec_t capture(struct rank *rank, cudaStream_t stream)
{
	const struct framework_config *config = rank->config;
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;

	device_cuda(rank, "cudaStreamBeginCapture",
		    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	device_kernels(rank, &rank->did, stream, config->launches);
	if (!rank_failed(rank))
		device_nccl(rank, "ncclAllReduce",
			    ncclAllReduce(rank->gradients, rank->gradients,
					  config->collective_bytes, ncclInt8, ncclSum, rank->comm,
					  stream));
	if (!rank_failed(rank))
		device_cuda(rank, "cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
	if (!rank_failed(rank))
		device_cuda(rank, "cudaGraphInstantiateWithFlags",
			    cudaGraphInstantiateWithFlags(&exec, graph, 0));
	if (graph)
		cudaGraphDestroy(graph);
	return exec;
}

void graphs_run(struct rank *rank)
{
	cudaStream_t stream = device_stream(rank);
	cudaGraphExec_t exec = rank_failed(rank) ? NULL : capture(rank, stream);

	while (rank_next_step(rank)) {
		train_batch(rank, stream);
		device_cuda(rank, "cudaGraphLaunch", cudaGraphLaunch(exec, stream));
		did_cut(&rank->did);
		train_optimizer(rank, stream);
		train_loss(rank, stream);
	}
	device_drain(rank, &rank->did);
	if (exec)
		cudaGraphExecDestroy(exec);
}
