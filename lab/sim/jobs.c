// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ML jobs. A launcher takes a batch, launches the work of a step, waits for its device, and
 * computes an optimizer step. With several ranks, the devices are done when the last rank has
 * launched and its device is done, plus the transfer. Each rank has loaders, which are processes,
 * and with several ranks a helper thread that polls until the collective is done.
 */
#include "sim/load.h"
#include "sim/ml.h"

#define FEED_NS	     (100 * NSEC_PER_USEC)
#define LAUNCH_NS    (200 * NSEC_PER_USEC)
#define DEVICE_NS    (20 * NSEC_PER_MSEC)
#define TRANSFER_NS  (100 * NSEC_PER_USEC)
#define POLL_EACH_NS (100 * NSEC_PER_USEC)
#define HELP_NS	     (300 * NSEC_PER_USEC)
#define SPIN_EACH_NS NSEC_PER_MSEC
#define PREFETCH     2

enum launcher_at {
	AT_FETCH,
	AT_FED,
	AT_LAUNCHED,
	AT_SYNC,
};

enum loader_at {
	AT_BEGIN,
	AT_LOADED,
	AT_FULL,
};

enum helper_at {
	AT_WOKEN,
	AT_HELPED,
};

/* The loader whose batch the launcher takes next. */
static u32 loader_wanted(const struct rank *rank)
{
	return (u32)(rank->nr_batches % rank->nr_loaders);
}

static struct next fetch(struct task *task, struct rank *rank)
{
	struct task *loader = rank->loaders[loader_wanted(rank)];

	if (!rank->nr_ready[loader->number]) {
		if (!rank->launcher_waits)
			ml_waits_for_data(&task->p);
		rank->launcher_waits = true;
		return (struct next){ NEXT_BLOCK };
	}
	if (rank->launcher_waits)
		ml_has_data(&task->p);
	rank->launcher_waits = false;
	rank->nr_ready[loader->number]--;
	rank->nr_batches++;
	if (loader->at == AT_FULL) {
		loader->at = AT_BEGIN;
		task_wake(loader, task->cpu, true);
	}
	task->at = AT_FED;
	return (struct next){ NEXT_RUN, FEED_NS };
}

static void device_done(void *arg, u64 turn)
{
	struct rank *rank = arg;

	if (rank->launcher->at == AT_SYNC)
		task_wake(rank->launcher, rank->launcher->cpu, false);
}

/* The last rank has come: all devices are done at the same time. */
static void collective_complete(struct job *job)
{
	job->nr_complete++;
	job->nr_arrived = 0;
	for (u32 i = 0; i < job->nr_ranks; i++) {
		job->ranks[i].done_ns = job->device_done_ns + TRANSFER_NS;
		event_at(job->ranks[i].done_ns, device_done, &job->ranks[i], 0);
	}
}

static void enter_sync(struct task *task, struct rank *rank)
{
	struct job *job = rank->job;
	u64 device_ns = DEVICE_NS;

	if (rank == &job->ranks[1])
		device_ns += DEVICE_NS / 100 * load_row()->slow_percent;
	rank->done_ns = 0;
	if (job->device_done_ns < machine.now + device_ns)
		job->device_done_ns = machine.now + device_ns;
	if (job->nr_ranks > 1) {
		ml_collective(&task->p);
		rank->nr_entered++;
		if (++job->nr_arrived == job->nr_ranks)
			collective_complete(job);
		task_wake(rank->helper, task->cpu, true);
	} else {
		rank->done_ns = job->device_done_ns;
		event_at(rank->done_ns, device_done, rank, 0);
	}
	ml_sync_begins(&task->p);
	task->at = AT_SYNC;
}

static struct next sync_wait(struct rank *rank)
{
	u64 left = rank->done_ns ? rank->done_ns - machine.now : SPIN_EACH_NS;

	return load_row()->spins ? (struct next){ NEXT_SPIN, left } : (struct next){ NEXT_BLOCK };
}

struct next launcher_next(struct task *task)
{
	struct rank *rank = task->rank;

	switch (task->at) {
	case AT_FETCH: return fetch(task, rank);
	case AT_FED:
		ml_launches(&task->p);
		task->at = AT_LAUNCHED;
		return (struct next){ NEXT_RUN, LAUNCH_NS };
	case AT_LAUNCHED: enter_sync(task, rank); return sync_wait(rank);
	default: break;
	}
	if (!rank->done_ns || machine.now < rank->done_ns)
		return sync_wait(rank);
	ml_sync_ends(&task->p);
	if (rank->step_since_ns)
		load_stepped(machine.now - rank->step_since_ns);
	rank->step_since_ns = machine.now;
	task->at = AT_FETCH;
	return (struct next){ NEXT_RUN, load_row()->optimizer_us * NSEC_PER_USEC };
}

struct next loader_next(struct task *task)
{
	struct rank *rank = task->rank;

	if (task->at == AT_LOADED) {
		rank->nr_ready[task->number]++;
		if (rank->launcher_waits && rank->launcher->state == TASK_ASLEEP &&
		    loader_wanted(rank) == task->number) {
			ml_brings_data(&rank->launcher->p);
			task_wake(rank->launcher, task->cpu, true);
		}
		if (rank->nr_ready[task->number] >= PREFETCH) {
			task->at = AT_FULL;
			return (struct next){ NEXT_BLOCK };
		}
	}
	task->at = AT_LOADED;
	return (struct next){ NEXT_RUN, load_about(load_row()->batch_us * NSEC_PER_USEC) };
}

struct next helper_next(struct task *task)
{
	struct rank *rank = task->rank;

	if (task->at == AT_HELPED) {
		task->at = AT_WOKEN;
		return (struct next){ NEXT_BLOCK };
	}
	if (rank->job->nr_complete < rank->nr_entered || machine.now < rank->done_ns)
		return (struct next){ NEXT_YIELD, POLL_EACH_NS };
	task->at = AT_HELPED;
	return (struct next){ NEXT_RUN, HELP_NS };
}

static void rank_make(struct rank *rank, struct job *job, u32 gpu, u32 nr_gpus, u32 cpu)
{
	const struct row *row = load_row();

	rank->job = job;
	rank->launcher = task_new(KIND_LAUNCHER, job->cgroup, NULL);
	rank->launcher->rank = rank;
	ml_launcher_begins(&rank->launcher->p, gpu, gpu * row->nodes / nr_gpus);
	if (job->nr_ranks > 1) {
		rank->helper = task_new(KIND_HELPER, job->cgroup, NULL);
		rank->helper->rank = rank;
		rank->helper->p.tgid = rank->launcher->p.tgid;
		rank->helper->p.group_leader = &rank->launcher->p;
		rank->helper->cpu = cpu;
		ml_helper_begins(&rank->helper->p);
	}
	rank->nr_loaders = row->loaders;
	rank->loaders = allocate(row->loaders * sizeof(struct task *));
	rank->nr_ready = allocate(row->loaders * sizeof(u32));
	for (u32 i = 0; i < row->loaders; i++) {
		rank->loaders[i] = task_new(KIND_LOADER, job->cgroup, rank->launcher);
		rank->loaders[i]->rank = rank;
		rank->loaders[i]->number = i;
		rank->loaders[i]->p.flags |= PF_FORKNOEXEC;
		ml_loader_begins(&rank->loaders[i]->p, &rank->launcher->p);
		task_start_soon(rank->loaders[i], cpu);
	}
	task_start_soon(rank->launcher, cpu);
}

void jobs_make(u32 nr_gpus, struct cgroup *(*cgroup_new)(const char *name, u32 number))
{
	const struct row *row = load_row();

	for (u32 i = 0; i < row->jobs; i++) {
		struct job *job = allocate(sizeof(*job));
		u32 cpu = (u32)load_random(row->cpus);

		job->nr_ranks = row->ranks;
		job->ranks = allocate(row->ranks * sizeof(struct rank));
		job->cgroup = cgroup_new("job", i);
		for (u32 k = 0; k < row->ranks; k++)
			rank_make(&job->ranks[k], job, k % nr_gpus, nr_gpus, cpu);
	}
}
