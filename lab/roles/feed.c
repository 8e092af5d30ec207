/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data flows through stages of tasks to the launcher, which asks for it by number. All of
 * these tasks are loaders. A pool has as many as --members; any other stage has one task.
 */
#include "roles/crew.h"
#include "roles/roles.h"

#define MAX_STAGES 3

struct feed {
	struct stage {
		enum member_kind kind;
		enum channel_kind link; /* by which it is asked, or gets its data */
		bool is_pool;
		u64 percent; /* of --member-us */
	} stages[MAX_STAGES];
	enum channel_kind last; /* to the launcher */
	bool is_lockstep; /* a step needs data of every member, which needs the previous step */
};

static const struct feed chain = {
	{ { MEMBER_THREAD, CHANNEL_FUTEX, false, 20 },
	  { MEMBER_THREAD, CHANNEL_FUTEX, true, 100 },
	  { MEMBER_THREAD, CHANNEL_FUTEX, false, 10 } },
	CHANNEL_FUTEX,
	false,
};

static const struct feed chain_socket = {
	{ { MEMBER_SERVED, CHANNEL_SOCKET, false, 20 },
	  { MEMBER_SERVED, CHANNEL_SOCKET, true, 100 },
	  { MEMBER_THREAD, CHANNEL_SOCKET, false, 10 } },
	CHANNEL_FUTEX,
	false,
};

static const struct feed chain_shm = {
	{ { MEMBER_SERVED, CHANNEL_FUTEX, false, 20 },
	  { MEMBER_SERVED, CHANNEL_FUTEX, true, 100 },
	  { MEMBER_THREAD, CHANNEL_FUTEX, false, 10 } },
	CHANNEL_FUTEX,
	false,
};

static const struct feed forkserver = { { { MEMBER_SERVED, CHANNEL_PIPE, true, 100 } },
					CHANNEL_PIPE,
					false };
static const struct feed spawn = { { { MEMBER_EXEC, CHANNEL_PIPE, true, 100 } },
				   CHANNEL_PIPE,
				   false };
static const struct feed rl = { { { MEMBER_FORK, CHANNEL_PIPE, true, 100 } }, CHANNEL_PIPE, true };

/* What the launcher sees of it. */
struct source {
	struct rank *rank;
	struct channel *asked, *filled;
	u64 nr_asked;
};

static void ask(struct source *source, u64 nr)
{
	for (u64 i = 0; i < nr && !rank_failed(source->rank); i++)
		if (channel_put(source->asked, source->nr_asked++) < 0)
			rank_fail(source->rank, "loaders", "they are too slow");
}

static void take(struct source *source, u64 nr)
{
	u64 number;

	for (u64 i = 0; i < nr && !rank_failed(source->rank); i++)
		if (!channel_take(source->filled, &source->rank->did, TRUTH_DID_DATA, &number))
			rank_fail(source->rank, "loaders", "a loader failed");
}

static void steps_run(struct source *source, bool is_lockstep)
{
	struct rank *rank = source->rank;
	u64 per_step = is_lockstep ? rank->config->members : 1;

	if (!is_lockstep)
		ask(source, rank->config->members * rank->config->loading.prefetch);
	while (rank_next_step(rank)) {
		if (is_lockstep)
			ask(source, per_step);
		take(source, per_step);
		if (!is_lockstep)
			ask(source, per_step);
		device_kernels(rank, &rank->did, NULL, rank->config->launches);
		train_optimizer(rank, NULL);
		train_loss(rank, NULL);
	}
}

static void feed_run(struct rank *rank, const struct feed *feed)
{
	const struct framework_config *config = rank->config;
	struct crew *crew = crew_new(config);
	u32 first, in;

	if (!crew) {
		rank_fail(rank, "loaders", "no memory");
		return;
	}
	first = in = crew_add_channels(crew, feed->stages[0].link, 1);
	for (size_t i = 0; i < MAX_STAGES && feed->stages[i].percent; i++) {
		const struct stage *stage = &feed->stages[i];
		bool is_last = i + 1 == MAX_STAGES || !stage[1].percent;
		u32 out = crew_add_channels(crew, is_last ? feed->last : stage[1].link, 1);

		crew_add_members(
			crew,
			(struct member){ stage->kind, TRUTH_ROLE_LOADER, in, out, 1,
					 config->member_us * NSEC_PER_USEC * stage->percent / 100 },
			stage->is_pool ? config->members : 1);
		in = out;
	}
	if (crew_start(crew, rank->truth) < 0)
		rank_fail(rank, "loaders", "cannot start");
	else
		steps_run(&(struct source){ rank, crew_channel(crew, first), crew_channel(crew, in),
					    0 },
			  feed->is_lockstep);
	if (crew_stop(crew) < 0)
		rank_fail(rank, "loaders", "a loader failed");
}

void chain_run(struct rank *rank)
{
	feed_run(rank, &chain);
}

void chain_shm_run(struct rank *rank)
{
	feed_run(rank, &chain_shm);
}

void chain_socket_run(struct rank *rank)
{
	feed_run(rank, &chain_socket);
}

void forkserver_run(struct rank *rank)
{
	feed_run(rank, &forkserver);
}

void rl_run(struct rank *rank)
{
	feed_run(rank, &rl);
}

void spawn_run(struct rank *rank)
{
	feed_run(rank, &spawn);
}
