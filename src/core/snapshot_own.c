/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/snapshot_own.h"
#include <string.h>

/* Facts about the node and its settings, which every user can find out. */
static void copy_node(struct snapshot *to, const struct snapshot *all)
{
	to->is_own = 1;
	to->time_ms = all->time_ms;
	to->monotonic_ns = all->monotonic_ns;
	memcpy(to->host, all->host, sizeof(to->host));
	memcpy(to->version, all->version, sizeof(to->version));
	memcpy(to->kernel, all->kernel, sizeof(to->kernel));
	to->lacks = all->lacks;
	to->refused = all->refused;
	to->phase_detection = all->phase_detection;
	to->sched.state = all->sched.state;
	to->sched.actuator = all->sched.actuator;
	to->sched.rules_off = all->sched.rules_off;
	to->sched.reserved_percent = all->sched.reserved_percent;
}

static void copy_hists(struct snapshot *to, struct snapshot_hists *hists,
		       const struct snapshot *from, const struct snapshot_hists *old)
{
	for (u32 kind = 0; kind < HIST_KIND_NR; kind++) {
		const struct hist *hist = snapshot_hist(from, old, kind);
		struct hist *copy = hist ? snapshot_add_hist(to, hists, kind) : NULL;

		if (copy)
			*copy = *hist;
	}
}

/* Of a job with processes of other users, only what is true of each of its processes. */
static void copy_job(struct snapshot *to, const struct snapshot *all,
		     const struct snapshot_job *job, struct snapshot_job *ret)
{
	if (job->users == USERS_ONE) {
		*ret = *job;
		ret->gone = (struct snapshot_hists){};
		copy_hists(to, &ret->gone, all, &job->gone);
		return;
	}
	memcpy(ret->container, job->container, sizeof(ret->container));
	ret->kind = job->kind;
	ret->users = job->users;
	memcpy(ret->names.pod, job->names.pod, sizeof(ret->names.pod));
	memcpy(ret->names.namespace, job->names.namespace, sizeof(ret->names.namespace));
}

static u32 add_job(struct snapshot *to, const struct snapshot *all, const struct snapshot_job *job)
{
	u32 nr = to->nr_jobs, index = snapshot_add_job(to, job->cgroup, job->name);

	if (to->nr_jobs > nr)
		copy_job(to, all, job, &to->jobs[index - 1]);
	return index;
}

static bool has_name(const struct snapshot *all, u32 uid, const char *name)
{
	for (u32 i = 0; i < all->nr_processes; i++)
		if (all->processes[i].uid == uid && strcmp(all->processes[i].comm, name) == 0)
			return true;
	return false;
}

static bool is_disk(u32 cause)
{
	return cause == IDLE_DISK || cause == IDLE_LOADER_DISK;
}

/* A task that ran instead of the user's own can belong to any user. Disks belong to the node. */
static void keep_own_culprits(struct snapshot_process *process, const struct snapshot *all)
{
	u32 nr = 0;

	for (u32 i = 0; i < process->nr_culprits; i++)
		if (is_disk(process->culprits[i].cause) ||
		    has_name(all, process->uid, process->culprits[i].name))
			process->culprits[nr++] = process->culprits[i];
	memset(&process->culprits[nr], 0,
	       (process->nr_culprits - nr) * sizeof(process->culprits[0]));
	process->nr_culprits = nr;
}

/* A pid can have belonged to a process of another user that has just ended. */
static bool is_own(const struct snapshot *all, u32 uid, u32 pid)
{
	bool found = false;

	for (u32 i = 0; i < all->nr_processes; i++) {
		if (all->processes[i].pid != pid)
			continue;
		if (all->processes[i].uid != uid)
			return false;
		found = true;
	}
	return found;
}

static void add_process(struct snapshot *to, const struct snapshot *all,
			const struct snapshot_process *process)
{
	struct snapshot_process *own = snapshot_add_process(to, process->pid);
	const struct snapshot_job *job = snapshot_job(all, process);

	*own = *process;
	own->hists = (struct snapshot_hists){};
	own->job = job ? add_job(to, all, job) : 0;
	own->nr_transitions = 0;
	snapshot_set_transitions(to, own, process->nr_transitions);
	if (own->consumer_pid && !is_own(all, process->uid, own->consumer_pid))
		own->consumer_pid = 0;
	keep_own_culprits(own, all);
	snapshot_oom_hide_others(own);
	copy_hists(to, &own->hists, all, &process->hists);
}

static bool uses_gpu(const struct snapshot *s, u32 gpu)
{
	for (u32 i = 0; i < s->nr_processes; i++) {
		const struct snapshot_process *process = &s->processes[i];

		if (process->task.known && process->task.gpu == gpu)
			return true;
		for (u32 k = 0; k < process->nr_memory; k++)
			if (process->memory[k].gpu == gpu)
				return true;
	}
	return false;
}

static void add_lists(struct snapshot *to, const struct snapshot *all, u32 uid)
{
	bool own = false;

	/* The threads of a process come one after another. */
	for (u32 i = 0; i < all->nr_threads; i++) {
		const struct snapshot_thread *thread = &all->threads[i];

		if (i == 0 || thread->pid != all->threads[i - 1].pid)
			own = is_own(all, uid, thread->pid);
		if (own)
			*snapshot_add_thread(to, thread->tid, thread->role) = *thread;
	}
	for (u32 i = 0; i < all->nr_comms; i++)
		if (is_own(all, uid, all->comms[i].pid))
			*snapshot_add_comm(to, all->comms[i].pid) = all->comms[i];
	for (u32 i = 0; i < all->nr_gpus; i++)
		if (uses_gpu(to, all->gpus[i].gpu))
			*snapshot_add_gpu(to, all->gpus[i].gpu) = all->gpus[i];
	for (u32 i = 0; i < all->nr_over_quota; i++)
		if (all->over_quota[i].uid == uid)
			snapshot_add_quota(to, &all->over_quota[i]);
}

int snapshot_own(const struct snapshot *all, u32 uid, struct snapshot **ret)
{
	struct snapshot_limits limits = {
		.nr_jobs = all->nr_jobs,
		.nr_processes = all->nr_processes,
		.nr_threads = all->nr_threads,
		.nr_gpus = all->nr_gpus,
		.nr_hists = all->nr_hists,
		.nr_comms = all->nr_comms,
	};
	struct snapshot *s;
	int err = snapshot_new(&limits, &s);

	if (err < 0)
		return err;
	copy_node(s, all);
	for (u32 i = 0; i < all->nr_processes; i++)
		if (all->processes[i].uid == uid)
			add_process(s, all, &all->processes[i]);
	add_lists(s, all, uid);
	*ret = s;
	return 0;
}
