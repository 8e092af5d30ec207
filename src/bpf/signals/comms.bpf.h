/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Storage of communicators, and the groups of calls that make up a split.
 * Communicators are in the task storage of the process leader and are freed with
 * it. A group exists from the entry of its first call to the end of its last
 * call.
 */
#include "bpf/compat.bpf.h"
#include "bpf/signals/calls.bpf.h"
#include "core/comm.h"
#include "core/sequence.h"

struct comms_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct comms);
};

struct comm_group_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SPLITS_MAX);
	__type(key, u64);
	__type(value, struct comm_group);
};

/* Not in task storage, in which the kernel keeps room for 64 of them for each CPU. */
struct sequence_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES *COMMS_MAX);
	__type(key, struct sequence_key);
	__type(value, struct sequence);
};

extern struct comms_map process_comms SEC(".maps");
extern struct sequence_map sequences SEC(".maps");
extern struct comm_group_map comm_groups SEC(".maps");

/* Communicators and groups that were dropped because they did not fit. */
extern u64 nr_dropped_comms;

static inline struct comms *comms_find(struct task_struct *p)
{
	struct task_struct *leader = p->group_leader;

	return leader ? bpf_task_storage_get(&process_comms, leader, NULL, 0) : NULL;
}

static inline struct comms *comms_get(struct task_struct *p)
{
	struct task_struct *leader = p->group_leader;

	if (leader)
		bpf_task_storage_get(&process_comms, leader, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* If two threads create it at the same time, one of the calls fails. */
	return comms_find(p);
}

static inline struct comm *comm_at(struct comms *comms, u64 i)
{
	if (i >= COMMS_MAX)
		return NULL;
	/* Keep the compiler from computing the address before the check. */
	barrier_var(i);
	return &comms->comm[i];
}

/* A bpf_loop() over the communicators of a process. A step returns 1 to end the loop. */
struct walk {
	struct comms *comms;
	u64 wanted; /* a handle or a time */
	u32 tid;
	u32 succeeded;
	u64 found; /* COMMS_MAX: not found */
};

static inline int find_step(u32 i, struct walk *walk)
{
	struct comm *comm = comm_at(walk->comms, i);

	if (!comm || comm->state != COMM_READY || comm->handle != walk->wanted)
		return 0;
	walk->found = i;
	return 1;
}

static inline struct comm *comm_find(struct comms *comms, u64 handle)
{
	struct walk walk = { .comms = comms, .wanted = handle, .found = compat_unknown(COMMS_MAX) };

	if (handle)
		bpf_loop(COMMS_MAX, find_step, &walk, 0);
	return comm_at(comms, walk.found);
}

static inline int claim_step(u32 i, struct walk *walk)
{
	struct comm *comm = comm_at(walk->comms, i);

	if (!comm ||
	    __sync_val_compare_and_swap(&comm->state, COMM_FREE, COMM_CLAIMED) != COMM_FREE)
		return 0;
	walk->found = i;
	return 1;
}

static inline struct comm *comm_claim(struct comms *comms)
{
	struct walk walk = { .comms = comms, .found = compat_unknown(COMMS_MAX) };

	bpf_loop(COMMS_MAX, claim_step, &walk, 0);
	return comm_at(comms, walk.found);
}

/* Set the state last: other threads use a communicator as soon as its state says so. */
static inline void comm_set_state(struct comm *comm, u64 state)
{
	__sync_lock_test_and_set(&comm->state, state);
}

static inline struct comm_group *group_get(u64 key)
{
	static const struct comm_group empty;
	struct comm_group *group = bpf_map_lookup_elem(&comm_groups, &key);

	if (group)
		return group;
	bpf_map_update_elem(&comm_groups, &key, &empty, BPF_NOEXIST);
	group = bpf_map_lookup_elem(&comm_groups, &key);
	if (!group)
		__sync_fetch_and_add(&nr_dropped_comms, 1);
	return group;
}

static inline void split_leave(struct comm *comm, struct comm_group *group)
{
	u64 key = comm->group;

	if (__sync_fetch_and_add(&group->nr_open, -1) == 1)
		bpf_map_delete_elem(&comm_groups, &key);
	comm->group = 0;
}

/*
 * Removes this rank from the group. The progress of the other ranks is unknown,
 * so later splits of the parent are unknown as well.
 */
static inline void split_give_up(struct comm *comm, struct comm *parent, struct comm_group *group)
{
	__sync_fetch_and_and(&group->present, ~(1ULL << (comm->parent_rank % COMM_MEMBERS_MAX)));
	split_leave(comm, group);
	comm->identity = 0;
	if (parent)
		parent->identity = 0;
}

/* Records the request of this rank. Nothing is recorded if the parent is unknown. */
static inline void split_join(struct comms *comms, struct comm *comm, s32 key)
{
	struct comm *parent = comm_find(comms, comm->parent);
	struct comm_group *group;
	u64 rank;

	if (!parent || !parent->identity || !comm->out || comm->color < COMM_NO_COLOR)
		return;
	comm->parent_rank = parent->rank;
	comm->nr_parent_ranks = parent->nr_ranks;
	comm->group = comm_mix(parent->identity, ++parent->nr_splits);
	/* The same for all its ranks on all machines, also where its size stays unknown. */
	comm->identity = comm_mix(comm->group, (u32)comm->color);
	rank = parent->rank;
	group = parent->nr_ranks && parent->nr_ranks <= COMM_MEMBERS_MAX ? group_get(comm->group)
									 : NULL;
	if (!group) {
		comm->group = 0;
		return;
	}
	barrier_var(rank);
	rank &= COMM_MEMBERS_MAX - 1;
	group->member[rank] = (struct comm_member){ .color = comm->color, .key = key };
	__sync_fetch_and_add(&group->nr_open, 1);
	/*
	 * The returned old value makes this a full barrier: the member is visible
	 * before its bit. Two ranks with the same number cannot be distinguished.
	 */
	if (__sync_fetch_and_or(&group->present, 1ULL << rank) >> rank & 1)
		split_give_up(comm, parent, group);
}

static inline void split_settle(struct comm *comm)
{
	u64 key = comm->group;
	struct comm_group *group = key ? bpf_map_lookup_elem(&comm_groups, &key) : NULL;
	struct comm_place place;

	if (!group)
		return;
	if (comm_group_is_whole(group, comm->nr_parent_ranks)) {
		place = comm_split(group, comm->parent_rank);
		comm->rank = place.rank;
		comm->nr_ranks = place.nr_ranks;
	}
	split_leave(comm, group);
}
