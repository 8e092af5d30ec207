/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a training loop, with the scopes that PyTorch enters around them. */
#include <string.h>

#include "framework/framework.h"

#define LOADER_CHECK_NS	  NSEC_PER_SEC /* interval at which a waiting launcher checks its loader */
#define OPTIMIZER_KERNELS 2	       /* a fused optimizer */
#define BATCH_BYTES	  (256U << 10)
#define BATCH_SCOPE	  "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
#define ZERO_GRAD_SCOPE	  "Optimizer.zero_grad#SGD.zero_grad"
#define OPTIMIZER_SCOPE	  "Optimizer.step#SGD.step"

static struct torch_scope scope_enter(const struct rank *rank, const char *name)
{
	const struct cxx_string text = { (u64)name, strlen(name) };
	const u64 no_args[5] = {}; /* an empty std::optional<std::string> */

	return rank->config->scopes ? TORCH_SCOPE_ENTER(&text, no_args) : (struct torch_scope){};
}

static void scope_leave(struct torch_scope scope)
{
	if (scope.object)
		TORCH_SCOPE_LEAVE((char *)scope.object + TORCH_RECORD_OFFSET);
}

static void batch_wait(struct rank *rank, u64 batch)
{
	u64 start;

	did_set(&rank->did, TRUTH_DID_DATA, batch | rank->index << 32);
	start = truth_now_ns();
	while (!ring_has_batch(rank->ring, batch)) {
		/* It may have put its last batch and ended since the last check. */
		if (loaders_lost(rank->loaders, batch) && !ring_has_batch(rank->ring, batch)) {
			rank_fail(rank, "loader", "ended before it delivered its batch");
			break;
		}
		ring_wait_batch(rank->ring, batch, LOADER_CHECK_NS);
	}
	did_wait(&rank->did, start, loaders_tid(rank->loaders, batch));
	did_set(&rank->did, TRUTH_DID_COMPUTE, 0);
}

void train_batch(struct rank *rank, cudaStream_t stream)
{
	u64 batch = rank->nr_batches++;
	struct torch_scope scope;

	if (!rank->loaders)
		return;
	scope = scope_enter(rank, BATCH_SCOPE);
	if (!ring_has_batch(rank->ring, batch))
		batch_wait(rank, batch);
	if (!rank_failed(rank))
		ring_take(rank->ring, batch);
	scope_leave(scope);
	if (!rank_failed(rank))
		device_cuda(rank, "cudaMemcpyAsync",
			    cudaMemcpyAsync(rank->device, rank->host, BATCH_BYTES,
					    cudaMemcpyHostToDevice, stream));
}

void train_clear_gradients(struct rank *rank, cudaStream_t stream)
{
	struct torch_scope scope = scope_enter(rank, ZERO_GRAD_SCOPE);

	if (!rank_failed(rank))
		device_cuda(rank, "cudaMemsetAsync",
			    cudaMemsetAsync(rank->device, 0, BATCH_BYTES, stream));
	scope_leave(scope);
}

void train_optimizer(struct rank *rank, cudaStream_t stream)
{
	struct torch_scope scope = scope_enter(rank, OPTIMIZER_SCOPE);

	device_kernels(rank, &rank->did, stream, OPTIMIZER_KERNELS);
	scope_leave(scope);
	rank_end_step(rank);
}

void train_loss(struct rank *rank, cudaStream_t stream)
{
	const struct framework_config *config = rank->config;

	if (config->sync_every == 0 || rank->nr_ended % config->sync_every != 0)
		return;
	device_item(rank, &rank->did, stream);
	burn_ns(&config->work.burn, config->log_us * NSEC_PER_USEC);
}
