// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An engine with workers, as the lab's scenario engine-poll: a core computes each iteration and
 * leaves it in shared memory, which the workers poll with sched_yield(). A worker launches the
 * iteration and sleeps until its device is done. The first one then wakes the core for the next.
 */
#include "sim/load.h"
#include "sim/ml.h"

#define LOOK_NS	  (20 * NSEC_PER_USEC)
#define LAUNCH_NS (200 * NSEC_PER_USEC)
#define DEVICE_NS (5 * NSEC_PER_MSEC)

enum worker_at {
	AT_POLL,
	AT_LAUNCHED,
	AT_SYNC,
};

enum core_at {
	AT_ASKED,
	AT_DONE,
};

struct next core_next(struct task *task)
{
	struct job *job = task->rank->job;

	if (task->at == AT_ASKED) {
		task->at = AT_DONE;
		return (struct next){ NEXT_RUN, load_row()->core_us * NSEC_PER_USEC };
	}
	job->nr_complete++;
	task->at = AT_ASKED;
	ml_rests(&task->p);
	return (struct next){ NEXT_BLOCK };
}

static void device_done(void *arg, u64 turn)
{
	struct rank *rank = arg;

	task_wake(rank->launcher, rank->launcher->cpu, false);
}

static struct next poll(struct task *task, struct rank *rank)
{
	if (rank->nr_entered == rank->job->nr_complete) {
		ml_polls(&task->p);
		return (struct next){ NEXT_YIELD, LOOK_NS };
	}
	rank->nr_entered++;
	ml_feeds(&task->p);
	ml_launches(&task->p);
	task->at = AT_LAUNCHED;
	return (struct next){ NEXT_RUN, LAUNCH_NS };
}

struct next worker_next(struct task *task)
{
	struct rank *rank = task->rank;
	struct task *core = rank->job->core;

	switch (task->at) {
	case AT_POLL: return poll(task, rank);
	case AT_LAUNCHED:
		ml_sync_begins(&task->p);
		event_at(machine.now + DEVICE_NS, device_done, rank, 0);
		task->at = AT_SYNC;
		return (struct next){ NEXT_BLOCK };
	default: break;
	}
	ml_sync_ends(&task->p);
	task->at = AT_POLL;
	if (rank == rank->job->ranks) {
		if (rank->step_since_ns)
			load_stepped(machine.now - rank->step_since_ns);
		rank->step_since_ns = machine.now;
		ml_asks(&core->p, &task->p);
		task_wake(core, task->cpu, true);
	}
	return (struct next){ NEXT_RUN, LOOK_NS };
}

void engine_make(struct cgroup *cgroup)
{
	struct job *job = allocate(sizeof(*job));
	u32 nr = load_row()->workers;

	job->nr_ranks = nr;
	job->ranks = allocate(nr * sizeof(struct rank));
	job->nr_complete = 1;
	for (u32 i = 0; i < nr; i++) {
		struct rank *rank = &job->ranks[i];

		rank->job = job;
		rank->launcher = task_new(KIND_WORKER, cgroup, NULL);
		rank->launcher->rank = rank;
		ml_launcher_begins(&rank->launcher->p, i, 0);
		task_start_soon(rank->launcher, 0);
	}
	job->core = task_new(KIND_CORE, cgroup, NULL);
	job->core->rank = job->ranks;
	ml_critical_begins(&job->core->p, &job->ranks[0].launcher->p);
}
