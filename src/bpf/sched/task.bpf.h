/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Per-task state of the scheduler and of learning. They share one task storage
 * entry, because the lookup costs more than most of the work that is done with
 * the result.
 */
#include "bpf/kernel.h"
#include "core/learner.h"

#define WAITS_NOWHERE (~0ULL)

struct sched_task {
	struct learner learner;
	u64 running_since_ns;
	u64 queued_since_ns;
	u64 turn_since_ns;  /* when it got its CPU; running_since_ns moves at each charge */
	u64 slice_since_ns; /* when its current slice began */
	u64 due_ns;	    /* spinner: when it should run again */
	u64 vtime;	    /* its virtual time; the kernel's dsq_vtime is its place in a queue */
	u64 rate;	    /* virtual time per CPU time (core/group.h) */
	u64 cgroup_id;	    /* of its group when it was counted */
	u64 group_ratio;    /* inverse share of its cgroup (core/group.h) */
	u64 waits_in;	    /* queue (DSQ) that counts it in nr_waiting, or WAITS_NOWHERE */
	u32 llc;	    /* LLC whose clock its virtual time refers to */
	u32 class;
	u32 is_capped; /* it would be promoted, but its group has used up its promotion */
	u32 tier;
	u32 polls;	    /* it gave up its CPU within POLL_NS and stayed runnable */
	u32 in_turn;	    /* spinner: the next turn is a short one */
	u32 woken;	    /* it waits for its first turn after a sleep, so it is in the kernel */
	u32 group;	    /* slot of its cgroup */
	u32 counted_weight; /* its weight among the runnable tasks; 0 while it sleeps */
	u32 is_zernel;	    /* of zerneld or a program that it started */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_task);
} sched_tasks SEC(".maps");

static struct sched_task *sched_task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&sched_tasks, p, NULL, 0);
}
