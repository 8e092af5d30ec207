/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of `zernel top`: the latest snapshot, its difference to a snapshot some seconds before,
 * and the phases of each process over time. Pure: no clock, no terminal. The model keeps two older
 * states 5 s apart and compares with the older one, so values cover the last 5 to 10 s.
 */
#include <stdbool.h>
#include "core/idle_share.h"
#include "core/snapshot.h"

#define TOP_STRIP_MAX 512      /* intervals whose phase is stored */
#define TOP_STRIP_GAP PHASE_NR /* no phase: no snapshot for this interval */
#define TOP_WINDOW_NS (5 * NSEC_PER_SEC)

/* Counters of a process, a difference of counters, or a sum over processes. */
struct top_counters {
	u64 time_ns;
	u64 nr_steps;
	u64 nr_timed_steps;
	u64 timed_steps_ns;
	u32 step_bases; /* a bit for each enum step_basis of the steps */
	u64 busy_ns;
	u64 idle_ns[IDLE_CAUSE_NR];
	/* Only in the counters of a process: time in which the GPU may have been idle. */
	u64 open_ns[IDLE_CAUSE_NR];
	u64 blocked_ns;
	struct gpu_use use;
	/* Only in a difference or a sum: the range of the idle time, whose middle is in idle_ns. */
	u64 idle_min_ns;
	u64 idle_max_ns;
	bool disagrees; /* a counter of the GPU contradicts the idle time, so the cause is unknown
			 */
	struct hist runqueue_wait;
};

/* The same for the whole node. */
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
	u8 strip[TOP_STRIP_MAX]; /* ring buffer; see top_strip() */
};

struct top_job {
	bool collapsed;
	u32 nr_processes;
	struct top_counters window; /* of all its processes */
	u64 memory_bytes;
	char cgroup[JOB_CGROUP_LEN];
};

struct top_model {
	struct snapshot *snapshot;	/* NULL: no snapshot arrived yet */
	struct top_process **processes; /* same order as in the snapshot */
	struct top_job *jobs;		/* same order as in the snapshot */
	u32 nr_processes;
	u32 nr_jobs;
	struct top_node_counters latest, newer, older, window;
	bool expand_new; /* new processes show their threads */
};

void top_model_done(struct top_model *model);

/*
 * Takes ownership of the snapshot, also on failure (-ENOMEM). Discards a snapshot with the same
 * time as the latest one.
 */
int top_model_feed(struct top_model *model, struct snapshot *snapshot);

/* Do not compare the next snapshot with earlier ones: time passed without snapshots. */
void top_model_gap(struct top_model *model);

/* Shows or hides the threads of all processes. */
void top_model_expand(struct top_model *model, bool expanded);

/* The phase `ago` intervals before the latest; TOP_STRIP_GAP if it is unknown. */
u32 top_strip(const struct top_process *process, u32 ago);

/* Returns the idle time and, if it is not 0, its largest cause. */
u64 top_idle_ns(const struct top_counters *window, u32 *ret_cause);
