/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process with two devices, as in JAX: a thread launches on each of them. The main
 * thread starts a step on the second device and waits for it after its own sync; the
 * second one has twice the work. Forked loaders feed the main thread.
 */
#include <string.h>
#include <sys/prctl.h>

#include "roles/crew.h"
#include "roles/roles.h"

struct second {
	struct rank *rank;
	struct channel *begin, *done;
};

static void *second_thread(void *arg)
{
	const struct second *second = arg;
	struct rank *rank = second->rank;
	int nr_devices = 1;
	struct did did;
	u64 step;

	prctl(PR_SET_NAME, "device1");
	did_begin(&did, rank->truth, TRUTH_DID_COMPUTE);
	device_cuda(rank, "cudaGetDeviceCount", cudaGetDeviceCount(&nr_devices));
	device_cuda(rank, "cudaSetDevice", cudaSetDevice(1 % nr_devices));
	device_cuda(rank, "cudaSetDeviceFlags",
		    cudaSetDeviceFlags(workload_sync_flags(&rank->config->work)));
	while (channel_take(second->begin, &did, TRUTH_DID_PEER, &step)) {
		device_kernels(rank, &did, NULL, 2 * rank->config->launches);
		device_drain(rank, &did);
		channel_put(second->done, step);
	}
	did_end(&did, TRUTH_ROLE_LAUNCHER);
	return NULL;
}

static void steps_run(struct rank *rank, const struct second *second)
{
	u64 step;

	while (rank_next_step(rank)) {
		train_batch(rank, NULL);
		channel_put(second->begin, rank->nr_begun);
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		device_item(rank, &rank->did, NULL);
		channel_take(second->done, &rank->did, TRUTH_DID_PEER, &step);
		burn_ns(&rank->config->work.burn, rank->config->log_us * NSEC_PER_USEC);
		rank_end_step(rank);
	}
}

void devices_run(struct rank *rank)
{
	struct channel begin, done;
	struct second second = { rank, &begin, &done };
	pthread_t thread;
	int r;

	channel_init(&begin, CHANNEL_FUTEX);
	channel_init(&done, CHANNEL_FUTEX);
	r = pthread_create(&thread, NULL, second_thread, &second);
	if (r) {
		rank_fail(rank, "pthread_create", strerror(r));
		return;
	}
	steps_run(rank, &second);
	channel_put_stop(&begin);
	pthread_join(thread, NULL);
}
