/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The threads that feed the launcher. */
#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "serve/serve.h"
#include "work/phases.h"

static void sleep_until(u64 ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Open loop: requests arrive when they are due, even when the answers are slow. */
void *generator_thread(void *arg)
{
	struct serve *serve = arg;
	struct phases phases;

	prctl(PR_SET_NAME, "generator");
	phases_begin(&phases, serve->truth, PHASE_UNKNOWN);
	for (u64 i = 0; i < serve->nr_requests; i++) {
		sleep_until(serve->requests[i].arrival_ns);
		queue_push(serve->arrived, &serve->requests[i]);
	}
	queue_close(serve->arrived);
	phases_end(&phases, TRUTH_ROLE_OTHER, truth_now_ns());
	return NULL;
}

/* A tokenizer supplies the launcher with data, like a loader in training. */
void *tokenizer_thread(void *arg)
{
	struct serve *serve = arg;
	const struct serve_config *config = serve->config;
	struct request *request;
	struct phases phases;

	prctl(PR_SET_NAME, "tokenizer");
	phases_begin(&phases, serve->truth, PHASE_DATA_LOADING);
	while ((request = queue_pop(serve->arrived))) {
		u64 start = truth_now_ns();

		burn_ns(&config->work.burn, random_around(config->tokenize_us * NSEC_PER_USEC,
							  ~config->work.seed, request->id));
		truth_log(serve->truth, TRUTH_LOAD, TRUTH_LOAD_CPU, start, truth_now_ns(),
			  request->id, 0, 0);
		queue_push(serve->tokenized, request);
	}
	if (__atomic_sub_fetch(&serve->nr_tokenizers_left, 1, __ATOMIC_ACQ_REL) == 0)
		queue_close(serve->tokenized);
	phases_end(&phases, TRUTH_ROLE_LOADER, truth_now_ns());
	return NULL;
}
