/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the tasks that work for a launcher see of it: a row for each launcher. A task that
 * brings data may be in any process, and programs cannot reach one task from another.
 *
 * A row is deleted with its launcher, or by a sweep of user space if the kernel did not report the
 * end of the launcher. The number of rows of a process is bounded, and so is the number of
 * processes of a user.
 */
#include "bpf/signals/state.bpf.h"

#define CONSUMERS_OF_PROCESS 8

struct consumer {
	u64 waited_ns;	     /* when a task last ended its wait for data */
	u64 fed_ns;	     /* when it last gave its first work to an idle GPU */
	u64 answered_ns;     /* when a task that it had asked ended its wait: core/role.h */
	u64 proven_ns;	     /* when a loader was last part of its work */
	u64 sleeps_since_ns; /* 0: it does not sleep, or not for data */
	u64 polled_ns;	     /* when it last polled for work and had none */
	u32 waits;	     /* for data; written by the scheduler */
	u32 has_loaders;     /* so that nobody searches for a loader in vain */
	u32 device;    /* number in its process; launchers of one device wait for each other */
	u32 holds_gpu; /* nobody is promoted on its behalf without; the scheduler updates it */
};

struct consumer_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES *CONSUMERS_OF_PROCESS);
	__type(key, struct consumer_key);
	__type(value, struct consumer);
};

extern struct consumer_map consumers SEC(".maps");

static inline struct consumer *consumer_at(const struct consumer_key *key)
{
	return key->tid ? bpf_map_lookup_elem(&consumers, key) : NULL;
}

/* The row of the launcher that launched last. */
static inline struct consumer_key *last_consumer(struct process_state *process)
{
	return &((struct process_storage *)process)->last_consumer;
}

/* A thread becomes a launcher. Without a row, nobody is promoted on its behalf. */
static inline void consumer_begins(struct task_struct *p, struct thread_state *thread,
				   struct process_state *process)
{
	struct process_storage *storage = (struct process_storage *)process;
	struct consumer empty = { .device = thread->device, .holds_gpu = holds_gpu(p) };

	if (thread->consumer_rights != CONSUMER_NONE)
		return;
	thread->consumer = (struct consumer_key){
		.start_ns = p->start_boottime,
		.tid = p->pid,
		.tgid = p->tgid,
	};
	if (storage->nr_consumers < CONSUMERS_OF_PROCESS &&
	    !bpf_map_update_elem(&consumers, &thread->consumer, &empty, BPF_NOEXIST)) {
		thread->consumer_rights = CONSUMER_OWNS;
		__sync_fetch_and_add(&storage->nr_consumers, 1);
		return;
	}
	thread->consumer.tid = 0;
	thread->consumer_rights = CONSUMER_REFUSED;
	__sync_fetch_and_add(&nr_dropped_consumers, 1);
}

/* `process` is NULL if its leader is gone: a thread that execs takes the place of its leader. */
static inline void consumer_ends(struct thread_state *thread, struct process_state *process)
{
	if (thread->consumer_rights == CONSUMER_OWNS) {
		bpf_map_delete_elem(&consumers, &thread->consumer);
		if (process)
			__sync_fetch_and_add(&((struct process_storage *)process)->nr_consumers,
					     -1);
	}
	thread->consumer.tid = 0;
	thread->consumer_rights = CONSUMER_NONE;
}

/* A launcher gives work to a device: another launcher of this device does not wait for data. */
static inline void consumer_feeds(struct thread_state *thread, struct process_state *process,
				  u64 now)
{
	struct consumer_key *last = last_consumer(process);
	struct consumer *own = consumer_at(&thread->consumer), *other;

	if (!own)
		return;
	own->fed_ns = now;
	own->device = thread->device;
	if (last->tid == thread->consumer.tid)
		return;
	other = consumer_at(last);
	if (other && other->device == own->device)
		other->waits = false;
	*last = thread->consumer;
}

/* The launcher polls memory for work. The GPU has none. */
static inline bool polls_for_work(const struct thread_state *thread,
				  const struct process_state *process)
{
	return role_polls(&thread->evidence) && !thread->depth &&
	       !phase_is_busy(process->task.phase);
}

/* A turn of a launcher ended. */
static inline void consumer_polls(const struct thread_state *thread,
				  const struct process_state *process, u64 now)
{
	struct consumer *row =
		polls_for_work(thread, process) ? consumer_at(&thread->consumer) : NULL;

	if (row)
		row->polled_ns = now;
}
