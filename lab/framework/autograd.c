/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Autograd of PyTorch: the main thread launches the forward pass and the optimizer,
 * another thread launches the backward pass, while the main thread waits for it.
 */
#include <string.h>
#include <sys/prctl.h>

#include "framework/framework.h"
#include "framework/turn.h"

struct autograd {
	struct rank *rank;
	struct turn wanted; /* backward passes; one more ends the thread */
	struct turn done;
	bool over;
};

static void *backward_thread(void *arg)
{
	struct autograd *autograd = arg;
	struct rank *rank = autograd->rank;
	struct did did;

	prctl(PR_SET_NAME, "pt_autograd_0");
	did_begin(&did, rank->truth, TRUTH_DID_COMPUTE);
	device_use(rank);
	for (u64 pass = 1;; pass++) {
		turn_wait(&autograd->wanted, &did, pass);
		if (autograd->over)
			break;
		device_kernels(rank, &did, NULL, rank->config->launches);
		turn_advance(&autograd->done);
	}
	did_end(&did, TRUTH_ROLE_LAUNCHER);
	return NULL;
}

void autograd_run(struct rank *rank)
{
	struct autograd autograd = { .rank = rank, .wanted = TURN_INIT, .done = TURN_INIT };
	pthread_t thread;
	int r = pthread_create(&thread, NULL, backward_thread, &autograd);

	if (r) {
		rank_fail(rank, "pthread_create", strerror(r));
		return;
	}
	while (rank_next_step(rank)) {
		train_batch(rank, NULL);
		train_clear_gradients(rank, NULL);
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		turn_advance(&autograd.wanted);
		turn_wait(&autograd.done, &rank->did, rank->nr_begun);
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
	}
	autograd.over = true;
	turn_advance(&autograd.wanted);
	pthread_join(thread, NULL);
}
