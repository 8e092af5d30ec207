/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serving with several workers, as in vLLM: an engine core schedules each iteration and
 * sends it to all workers by shared memory, which they poll with sched_yield(). A worker is
 * a rank. The results of the first one end an iteration, which is a token, and wake the
 * core for the next. The core is a process of its own, and no worker is its parent.
 */
#include "roles/crew.h"
#include "roles/roles.h"

/* Channels of the crew. */
enum { RESULTS, WORK };

int engine_begin(const struct framework_config *config, struct shared *shared)
{
	struct crew *crew = crew_new(config);

	if (!crew)
		return -1;
	crew_add_channels(crew, CHANNEL_FUTEX, 1);
	crew_add_channels(crew, CHANNEL_YIELD, config->ranks);
	crew_add_members(crew,
			 (struct member){ MEMBER_FORK, TRUTH_ROLE_FEEDER_PATH, RESULTS, WORK,
					  (u32)config->ranks, config->member_us * NSEC_PER_USEC },
			 1);
	shared->crew = crew;
	return crew_start(crew, NULL);
}

int engine_end(struct shared *shared)
{
	return crew_stop(shared->crew);
}

void engine_run(struct rank *rank)
{
	struct crew *crew = rank->shared->crew;
	struct channel *work = crew_channel(crew, WORK + (u32)rank->index);
	u64 number;

	if (rank->index == 0)
		channel_put(crew_channel(crew, RESULTS), 0);
	while (rank_next_step(rank)) {
		if (!channel_take(work, &rank->did, TRUTH_DID_PEER, &number)) {
			rank_fail(rank, "engine core", "ended");
			break;
		}
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		device_item(rank, &rank->did, NULL);
		rank_end_step(rank);
		if (rank->index == 0 && channel_put(crew_channel(crew, RESULTS), number + 1) < 0)
			rank_fail(rank, "engine core", "it does not take results");
	}
}
