/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What `zernel top` knows: the latest snapshot, how it differs from those some seconds
 * before, and the phases of each process over time. Pure: no clock, no terminal. Figures
 * are of the last 5 to 10 s, for two marks are kept and the older one is compared with.
 */
#include <stdbool.h>
#include "core/snapshot.h"

#define TOP_STRIP_MAX 512      /* intervals whose phase is remembered */
#define TOP_STRIP_GAP PHASE_NR /* in place of a phase: nobody looked */
#define TOP_WINDOW_NS (5 * NSEC_PER_SEC)

/* Counters of a process, or how far they went meanwhile; those of several add up. */
struct top_counters {
	u64 time_ns;
	u64 nr_steps;
	u64 nr_timed_steps;
	u64 timed_steps_ns;
	u64 busy_ns;
	u64 idle_ns[IDLE_CAUSE_NR];
	struct hist runqueue_wait;
};

/* Of the whole node, likewise. */
struct top_node_counters {
	u64 time_ns;
	u64 nr_decisions[CLASS_NR];
	u64 cpu_ns;
	u64 bpf_run_ns;
};

struct top_process {
	u32 pid;
	bool expanded;
	u64 start_ns;
	u64 phase_ns[PHASE_NR]; /* in the latest snapshot */
	struct top_counters latest, newer, older;
	struct top_counters window; /* from `older` to `latest` */
	u64 memory_bytes;
	u32 nr_strip;
	u8 strip[TOP_STRIP_MAX]; /* a ring; see top_strip() */
};

struct top_job {
	bool collapsed;
	u32 nr_processes;
	struct top_counters window; /* of all its processes */
	u64 memory_bytes;
	char cgroup[SNAPSHOT_TEXT_LEN];
};

struct top_model {
	struct snapshot *snapshot;	/* NULL: none came yet */
	struct top_process **processes; /* as in the snapshot, one by one */
	struct top_job *jobs;		/* likewise */
	u32 nr_processes;
	u32 nr_jobs;
	struct top_node_counters latest, newer, older, window;
	bool expand_new; /* processes that are new show their threads */
};

void top_model_done(struct top_model *model);

/*
 * Takes the snapshot over, also when it fails, which is for want of memory. One that is
 * as old as the latest is thrown away.
 */
int top_model_feed(struct top_model *model, struct snapshot *snapshot);

/* What comes next is not to be compared with what was: time passed unseen. */
void top_model_gap(struct top_model *model);

/* All processes show their threads, or none. */
void top_model_expand(struct top_model *model, bool expanded);

/* The phase `ago` intervals before the latest; TOP_STRIP_GAP when there was none. */
u32 top_strip(const struct top_process *process, u32 ago);

/* The whole idle time and, when there is any, its largest part. */
u64 top_idle_ns(const struct top_counters *window, u32 *ret_cause);
