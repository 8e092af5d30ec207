/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A rank: setup, steps, cleanup. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/framework.h"

#define TRUTH_RECORDS (4U << 20)

void rank_fail(struct rank *rank, const char *what, const char *why)
{
	if (!__atomic_exchange_n(&rank->failed, true, __ATOMIC_ACQ_REL))
		fprintf(stderr, "%s: rank %llu: %s: %s\n", rank->config->program, rank->index, what,
			why);
}

bool rank_failed(const struct rank *rank)
{
	return __atomic_load_n(&rank->failed, __ATOMIC_ACQUIRE);
}

/* Returns whether step `step` runs. */
static bool step_allowed(struct rank *rank, u64 step, bool is_over)
{
	u64 *started = &rank->shared->started;
	u64 known = is_over ? __atomic_or_fetch(started, STARTED_LAST, __ATOMIC_ACQ_REL)
			    : __atomic_load_n(started, __ATOMIC_ACQUIRE);

	while (!(known & STARTED_LAST) && known <= step)
		if (__atomic_compare_exchange_n(started, &known, step + 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return true;
	return step < (known & ~STARTED_LAST);
}

/*
 * Launches run ahead, so a rank can be hundreds of steps ahead of another one. When rank
 * 0 finds that the time is over, every rank still runs all steps that began anywhere, and
 * no rank waits alone in a collective.
 */
bool rank_next_step(struct rank *rank)
{
	double seconds = rank->config->seconds;
	bool is_over = rank->index == 0 && seconds > 0 && rank->nr_begun > 0 &&
		       (double)(truth_now_ns() - rank->begin_ns) >= seconds * NSEC_PER_SEC;

	if (rank_failed(rank) || !step_allowed(rank, rank->nr_begun, is_over))
		return false;
	rank->nr_begun++;
	return true;
}

void rank_end_step(struct rank *rank)
{
	u64 now = truth_now_ns();

	if (rank->nr_ended == rank->room_steps) {
		u64 room = rank->room_steps ? rank->room_steps * 2 : 4096;
		u64 *steps_ns = realloc(rank->steps_ns, room * sizeof(*steps_ns));

		if (!steps_ns) {
			rank_fail(rank, "steps", strerror(ENOMEM));
			return;
		}
		rank->steps_ns = steps_ns;
		rank->room_steps = room;
	}
	truth_log(rank->truth, TRUTH_STEP, 0, rank->step_ns, now, rank->nr_ended, rank->index, 0);
	rank->steps_ns[rank->nr_ended++] = now - rank->step_ns;
	rank->step_ns = now;
}

static void data_open(struct rank *rank)
{
	const struct loading *loading = &rank->config->loading;
	int r;

	if (loading->loaders == 0)
		return;
	rank->ring = ring_new(loading->loaders * loading->prefetch);
	if (!rank->ring) {
		rank_fail(rank, "batches", strerror(ENOMEM));
		return;
	}
	r = loaders_start(&rank->config->work, loading, rank->index, ~0ULL, rank->ring, rank->truth,
			  &rank->loaders);
	if (r < 0)
		rank_fail(rank, "loaders", strerror(-r));
}

static void rank_close(struct rank *rank)
{
	if (rank->ring)
		ring_stop(rank->ring);
	if (rank->loaders && loaders_finish(rank->loaders) < 0)
		rank_fail(rank, "loaders", "a loader failed");
	ring_free(rank->ring);
	device_close(rank);
	free(rank->steps_ns);
}

static void job_run(struct rank *rank, void (*run)(struct rank *rank))
{
	pthread_barrier_wait(&rank->shared->barrier);
	rank->begin_ns = rank->step_ns = truth_now_ns();
	run(rank);
	device_drain(rank, &rank->did);
	if (rank->index == 0) {
		rank->shared->seconds = (double)(rank->step_ns - rank->begin_ns) / NSEC_PER_SEC;
		rank->shared->steps = truth_quantiles_of(rank->steps_ns, rank->nr_ended);
	}
}

int rank_run(const struct framework_config *config, struct shared *shared, u64 index,
	     void (*run)(struct rank *rank))
{
	struct rank rank = {
		.config = config,
		.shared = shared,
		.index = index,
		.kernel_ns = config->kernel_us * NSEC_PER_USEC,
	};
	int r = 0;

	if (index == config->slow_rank)
		rank.kernel_ns = (u64)((double)rank.kernel_ns * config->slow_factor);
	if (config->work.truth)
		r = truth_open(config->work.truth, config->program, TRUTH_RECORDS, &rank.truth);
	if (r < 0) {
		rank_fail(&rank, config->work.truth, strerror(-r));
		return r;
	}
	did_begin(&rank.did, rank.truth, TRUTH_DID_COMPUTE);
	/* Forks, so it comes before the device. */
	data_open(&rank);
	if (!rank_failed(&rank))
		device_open(&rank);
	if (!rank_failed(&rank))
		job_run(&rank, run);
	rank_close(&rank);
	did_end(&rank.did, TRUTH_ROLE_LAUNCHER);
	truth_free(rank.truth);
	return rank_failed(&rank) ? -EIO : 0;
}
