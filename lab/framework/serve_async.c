/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serving with asynchronous scheduling, as in vLLM: the engine thread queues the next
 * iteration while the device computes the current one. The results go to the host on a
 * copy stream, and an output thread waits for that copy. An iteration ends when its
 * results are on the host.
 */
#include <string.h>
#include <sys/prctl.h>

#include "base/macros.h"
#include "framework/framework.h"
#include "framework/turn.h"

#define ITERATIONS_AHEAD 2
#define RESULT_BYTES	 4096
#define OUTPUT_NS	 (200 * NSEC_PER_USEC) /* CPU time to detokenize */

struct server {
	struct rank *rank;
	cudaStream_t compute, copy;
	cudaEvent_t computed;
	cudaEvent_t copied[ITERATIONS_AHEAD];
	struct turn queued; /* iterations; one more ends the output thread */
	struct turn done;
	bool over;
};

static void *output_thread(void *arg)
{
	struct server *server = arg;
	struct rank *rank = server->rank;
	struct did did;

	prctl(PR_SET_NAME, "output");
	did_begin(&did, rank->truth, TRUTH_DID_COMPUTE);
	device_use(rank);
	for (u64 iteration = 0;; iteration++) {
		turn_wait(&server->queued, &did, iteration + 1);
		if (server->over)
			break;
		device_wait(rank, &did, server->copied[iteration % ITERATIONS_AHEAD]);
		rank_end_step(rank);
		turn_advance(&server->done);
		burn_ns(&rank->config->work.burn, OUTPUT_NS);
	}
	did_end(&did, TRUTH_ROLE_SYNC_WAITER);
	return NULL;
}

static void iteration_queue(struct server *server, u64 iteration)
{
	struct rank *rank = server->rank;

	device_kernels(rank, &rank->did, server->compute, rank->config->launches);
	device_record(rank, server->computed, server->compute);
	device_follow(rank, server->copy, server->computed);
	if (!rank_failed(rank))
		device_cuda(rank, "cudaMemcpyAsync",
			    cudaMemcpyAsync(rank->host, rank->device, RESULT_BYTES,
					    cudaMemcpyDeviceToHost, server->copy));
	device_record(rank, server->copied[iteration % ITERATIONS_AHEAD], server->copy);
	turn_advance(&server->queued);
}

static void server_open(struct server *server)
{
	struct rank *rank = server->rank;

	server->compute = device_stream(rank);
	server->copy = device_stream(rank);
	server->computed = device_event(rank);
	for (size_t i = 0; i < ARRAY_SIZE(server->copied); i++)
		server->copied[i] = device_event(rank);
}

void serve_async_run(struct rank *rank)
{
	struct server server = { .rank = rank, .queued = TURN_INIT, .done = TURN_INIT };
	pthread_t thread;
	int r;

	server_open(&server);
	r = pthread_create(&thread, NULL, output_thread, &server);
	if (r) {
		rank_fail(rank, "pthread_create", strerror(r));
		return;
	}
	/* The schedule of an iteration needs the results of the one before the previous one. */
	while (rank_next_step(rank)) {
		if (rank->nr_begun > ITERATIONS_AHEAD)
			turn_wait(&server.done, &rank->did, rank->nr_begun - ITERATIONS_AHEAD);
		iteration_queue(&server, rank->nr_begun - 1);
	}
	turn_wait(&server.done, &rank->did, rank->nr_begun);
	server.over = true;
	turn_advance(&server.queued);
	pthread_join(thread, NULL);
}
