/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the scheduler and the learning keep of each task, in one place: to find it
 * costs more than most of what is done with it.
 */
#include "bpf/kernel.h"
#include "core/learner.h"

struct sched_task {
	struct learner learner;
	u64 running_since_ns;
	u64 queued_since_ns;
	u64 turn_since_ns;  /* as running_since_ns, which moves on when the turn is charged */
	u64 due_ns;	    /* of a spinner: when it should run again */
	u64 tier_credit_ns; /* what its virtual time is short of until it runs */
	u32 llc;	    /* whose clock the task's virtual time is measured by */
	u32 class;
	u32 waits_in; /* a queue where it counts */
	u32 tier;
	u32 polls;	   /* its last turn was short, and it did not sleep since */
	u32 cgroup_weight; /* what the weights above it make of its own, in per cent */
	u32 weights_seen;  /* nr_weight_changes when that was found */
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
