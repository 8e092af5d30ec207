/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ZeRO-offload: the optimizer runs on the CPU, by a team of threads as in OpenMP. The
 * launcher is the master of the team: between the backward pass and the next step it wakes
 * the team, does its own share, and waits for the team. All of them spin for a bounded
 * time before they sleep. Forked loaders prepare batches at the same time.
 */
#include "roles/crew.h"
#include "roles/roles.h"

static void parallel_region(struct rank *rank, struct crew *crew, u32 work, u32 done)
{
	const struct framework_config *config = rank->config;
	u64 number;

	for (u64 i = 0; i < config->members && !rank_failed(rank); i++)
		if (channel_put(crew_channel(crew, work), rank->nr_begun * MEMBERS_MAX + i) < 0)
			rank_fail(rank, "team", "it does not take its work");
	burn_ns(&config->work.burn, random_around(config->member_us * NSEC_PER_USEC,
						  config->work.seed, rank->nr_begun));
	for (u64 i = 0; i < config->members && !rank_failed(rank); i++)
		if (!channel_take(crew_channel(crew, done), &rank->did, TRUTH_DID_PEER, &number))
			rank_fail(rank, "team", "a thread failed");
}

void offload_run(struct rank *rank)
{
	const struct framework_config *config = rank->config;
	struct crew *crew = crew_new(config);
	u32 work, done;

	if (!crew) {
		rank_fail(rank, "team", "no memory");
		return;
	}
	work = crew_add_channels(crew, CHANNEL_SPIN, 1);
	done = crew_add_channels(crew, CHANNEL_SPIN, 1);
	crew_add_members(crew,
			 (struct member){ MEMBER_THREAD, TRUTH_ROLE_FEEDER_PATH, work, done, 1,
					  config->member_us * NSEC_PER_USEC },
			 config->members);
	if (crew_start(crew, rank->truth) < 0)
		rank_fail(rank, "team", "cannot start");
	while (rank_next_step(rank)) {
		train_batch(rank, NULL);
		device_kernels(rank, &rank->did, NULL, config->launches);
		device_item(rank, &rank->did, NULL);
		parallel_region(rank, crew, work, done);
		rank_end_step(rank);
	}
	if (crew_stop(crew) < 0)
		rank_fail(rank, "team", "a thread failed");
}
