/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All that is known at one moment: what the daemon folds, what exporters render,
 * what goes over the socket. Plain data: whole numbers and text, no clock and no
 * pointers but to its own arrays, which are taken once. What did not fit in them
 * is counted among the drops.
 *
 * Text is always valid UTF-8 and ends with a zero: whoever fills it in uses
 * snapshot_set_text(), since names of tasks can be any bytes.
 */
#include <stddef.h>
#include "abi/idle.h"
#include "abi/sched.h"
#include "abi/signals.h"
#include "base/macros.h"
#include "core/book.h"
#include "core/hist.h"
#include "core/phase.h"

#define SNAPSHOT_VERSION	2
/* The oldest version that recordings may have. */
#define SNAPSHOT_VERSION_OLDEST 1
#define SNAPSHOT_TEXT_LEN	128
/* A byte that is no UTF-8 takes three. */
#define SNAPSHOT_COMM_LEN	(3 * COMM_LEN)

/* What was lost, and where. */
enum snapshot_drop {
	DROP_EVENTS, /* these as in struct kernel_drops */
	DROP_PROCESSES,
	DROP_FRAMES,
	DROP_SAMPLES,
	DROP_BPF_PROGRAM_RUNS, /* the kernel did not run a program */
	DROP_COMMS,
	DROP_MEMORY,
	DROP_OBSERVATIONS,
	DROP_MAPS,		 /* mappings of libraries that came too fast */
	DROP_PROFILES,		 /* new kinds of tasks that found no room */
	DROP_SNAPSHOT_PROCESSES, /* these did not fit in a snapshot */
	DROP_SNAPSHOT_THREADS,
	DROP_SNAPSHOT_JOBS,
	DROP_SNAPSHOT_GPUS,
	DROP_SNAPSHOT_HISTS,
	DROP_NR,
};

/* Where the distributions of somebody are: one more than the place in hists, 0 for none. */
struct snapshot_hists {
	u32 at[HIST_KIND_NR]; /* by enum hist_kind */
};

/* Calls that were accepted, by operation, and the bytes each rank gave them. */
struct snapshot_collectives {
	u64 nr[COLLECTIVE_NR];
	u64 bytes[COLLECTIVE_NR];
};

/*
 * Where processes belong together: a cgroup. What processes that are gone had
 * measured stays with their job as long as it has any, and with the node for ever,
 * so that sums over processes do not go down when one of them ends.
 */
struct snapshot_job {
	char name[SNAPSHOT_TEXT_LEN]; /* Slurm job, pod, unit; else the cgroup's path */
	char cgroup[SNAPSHOT_TEXT_LEN];
	struct snapshot_hists gone;
	struct snapshot_collectives gone_collectives;
};

/* A process may name its devices in ways that do not tell the machine's numbers, as by UUID. */
#define SNAPSHOT_GPU_UNKNOWN (~0U)

/* Memory of a process on one GPU; on all that are not known, together. */
struct snapshot_memory {
	u32 gpu; /* the machine's number, or SNAPSHOT_GPU_UNKNOWN */
	u32 pad;
	struct memory_book book;
};

/* Who stood in the way of a process: ran instead of it, or is the disk it waited for. */
struct snapshot_culprit {
	u32 cause; /* enum idle_cause */
	u32 pad;
	u64 ns;
	char name[SNAPSHOT_COMM_LEN];
};

/* The part of a task's state (core/task.h) that struct snapshot_process does not have itself. */
struct snapshot_task {
	u32 known;	      /* 0: a snapshot of an older zerneld, without the rest */
	u32 gpu_utilization;  /* per cent */
	u32 io_wait_permille; /* share of time in I/O wait, 1000 at most */
	u32 nr_futex_waits;   /* recent ones */
	u32 gpu;	      /* the machine's number of its main GPU, or SNAPSHOT_GPU_UNKNOWN */
	u8 is_ml;
	u8 collective_mapped;
	u8 pad[2];
	u64 last_sync_ns; /* 0: never */
	u64 burst_ns;
	u64 phase_since_ns;
};

struct snapshot_process {
	u32 pid;
	u32 job; /* one more than the place in jobs, 0 for none */
	u64 start_ns;
	u32 nr_ranks; /* 0: rank is not known */
	s32 rank;
	u32 phase;
	u32 launcher_tid; /* 0: nobody launched yet */
	u32 consumer_pid; /* of a loader process: whom it feeds, else 0 */
	u32 nr_memory;
	u32 nr_culprits;
	u32 pad;
	u64 phase_ns[PHASE_NR]; /* the current stay included */
	u64 nr_transitions;
	u64 nr_steps;
	u64 busy_ns;		    /* the device had work of its, since the first launch */
	u64 idle_ns[IDLE_CAUSE_NR]; /* it had none, likewise; both with the current stay */
	struct snapshot_task task;
	char comm[SNAPSHOT_COMM_LEN];
	struct snapshot_memory memory[GPU_MAX];		/* each GPU once */
	struct snapshot_culprit culprits[CULPRITS_MAX]; /* who cost most first */
	struct snapshot_hists hists;
	struct snapshot_collectives collectives;
};

struct snapshot_thread {
	u32 tid;
	u32 pid;
	u32 role;
	u32 pad;
	char comm[SNAPSHOT_COMM_LEN];
};

/* Absent is not zero. */
enum snapshot_gpu_field {
	SNAPSHOT_GPU_BUSY = 1 << 0,
	SNAPSHOT_GPU_MEMORY_USED = 1 << 1,
	SNAPSHOT_GPU_MEMORY_TOTAL = 1 << 2,
	SNAPSHOT_GPU_ACTIVE = 1 << 3,
	SNAPSHOT_GPU_NUMA_NODE = 1 << 4,
};

struct snapshot_gpu {
	u32 gpu; /* the machine's number */
	u32 valid;
	u32 busy_percent;
	u32 numa_node; /* near which the scheduler places the tasks of this GPU */
	u64 memory_used_bytes;
	u64 memory_total_bytes;
	/*
	 * For how long its multiprocessors worked since it is watched. Busy it is also while
	 * a collective waits for other ranks; active it is not.
	 */
	u64 active_ns;
	u64 active_at_ns;	      /* when that was so, in CLOCK_MONOTONIC */
	char uuid[SNAPSHOT_TEXT_LEN]; /* empty: not known */
};

enum snapshot_sched_state {
	SCHED_OFF, /* never attached, or taken down in good order */
	SCHED_ATTACHED,
	SCHED_EJECTED,
	SCHED_STATE_NR,
};

/* What the scheduler did with tasks of one class. */
struct snapshot_class {
	u64 nr[DECISION_NR];
	u64 ran_ns;
	struct hist runqueue_wait;
};

struct snapshot_sched {
	u32 state;
	u32 rules_off;	      /* a bit for each enum sched_rule */
	u32 reserved_percent; /* of each CPU, for ordinary tasks */
	u32 pad;
	u64 slice_ns;
	u64 max_wait_ms; /* the longest time a task waits before it runs */
	u64 nr_ejected;
	struct snapshot_class classes[CLASS_NR];
	char reason[SNAPSHOT_TEXT_LEN]; /* of the end, when there was one */
};

struct snapshot_learning {
	u64 nr_profiles;
	u64 nr_confident;
	u64 nr_observations;
};

/* What is followed of GPU runtimes. */
struct snapshot_probes {
	u64 nr_libraries; /* files whose calls are probed now */
	u64 nr_probes;	  /* calls in them */
	u64 nr_processes; /* that have one mapped */
	u64 nr_failed;	  /* times that one could not be read or probed */
};

/* What Zernel itself takes. */
struct snapshot_cost {
	u64 cpu_ns; /* of the daemon, user and system */
	u64 rss_bytes;
	u64 bpf_run_ns;
};

/* How much there is room for. */
struct snapshot_limits {
	u32 nr_jobs;
	u32 nr_processes;
	u32 nr_threads;
	u32 nr_gpus;
	u32 nr_hists;
};

#define SNAPSHOT_LIMITS_DEFAULT                                                                    \
	((struct snapshot_limits){                                                                 \
		.nr_jobs = 256,                                                                    \
		.nr_processes = MAX_PROCESSES,                                                     \
		.nr_threads = 8192,                                                                \
		.nr_gpus = 64,                                                                     \
		.nr_hists = 1024,                                                                  \
	})

/* Nobody reads or makes a larger one. */
#define SNAPSHOT_LIMITS_MAX                                                                        \
	((struct snapshot_limits){                                                                 \
		.nr_jobs = 4096,                                                                   \
		.nr_processes = 4096,                                                              \
		.nr_threads = 65536,                                                               \
		.nr_gpus = 256,                                                                    \
		.nr_hists = 16384,                                                                 \
	})

struct snapshot {
	u64 time_ms;	  /* since the epoch */
	u64 monotonic_ns; /* CLOCK_MONOTONIC, as all other times here */
	char host[SNAPSHOT_TEXT_LEN];
	char version[SNAPSHOT_TEXT_LEN]; /* of zerneld */
	char kernel[SNAPSHOT_TEXT_LEN];	 /* its release */

	struct snapshot_limits limits;
	struct snapshot_job *jobs;
	struct snapshot_process *processes;
	struct snapshot_thread *threads;
	struct snapshot_gpu *gpus;
	struct hist *hists;
	u32 nr_jobs;
	u32 nr_processes;
	u32 nr_threads;
	u32 nr_gpus;
	u32 nr_hists;
	u32 nr_role[ROLE_NR];	    /* threads of each role, also those that found no room */
	struct snapshot_hists gone; /* see struct snapshot_job */
	struct snapshot_collectives gone_collectives;
	u64 nr_transitions; /* of all processes there are and were */

	struct phase_config phase_detection; /* what the phase detector decides by */
	struct snapshot_sched sched;
	struct snapshot_learning learning;
	struct snapshot_probes probes;
	struct snapshot_cost cost;
	u64 nr_dropped[DROP_NR];
};

/* All empty. The only memory a snapshot ever takes. -E2BIG: more than SNAPSHOT_LIMITS_MAX. */
int snapshot_new(const struct snapshot_limits *limits, struct snapshot **ret);
struct snapshot *snapshot_free(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot, snapshot_free);

/* Empty again, the limits as they were. */
void snapshot_clear(struct snapshot *snapshot);

/* Each NULL when there is no room, which is counted. All else of a new one is zero. */
struct snapshot_process *snapshot_add_process(struct snapshot *snapshot, u32 pid);
struct snapshot_thread *snapshot_add_thread(struct snapshot *snapshot, u32 tid, u32 role);
struct snapshot_gpu *snapshot_add_gpu(struct snapshot *snapshot, u32 gpu);
/* What a process of this cgroup has as its job, which is added when it is new; 0: no room. */
u32 snapshot_add_job(struct snapshot *snapshot, const char *cgroup, const char *name);
/* A distribution of a process, which is added when it is new. */
struct hist *snapshot_add_hist(struct snapshot *snapshot, struct snapshot_hists *hists, u32 kind);

/* How often a process has changed its phase so far, which counts for the node as well. */
void snapshot_set_transitions(struct snapshot *snapshot, struct snapshot_process *process, u64 nr);

/* NULL when there is none. */
static inline const struct hist *snapshot_hist(const struct snapshot *snapshot,
					       const struct snapshot_hists *hists, u32 kind)
{
	return hists->at[kind] ? &snapshot->hists[hists->at[kind] - 1] : NULL;
}

static inline struct snapshot_job *snapshot_job(const struct snapshot *snapshot,
						const struct snapshot_process *process)
{
	return process->job ? &snapshot->jobs[process->job - 1] : NULL;
}

/*
 * Call once, when all processes and their distributions are in: takes over from the
 * snapshot before what was measured by processes that are gone since, and how much
 * did not fit in snapshots so far.
 */
void snapshot_carry(struct snapshot *snapshot, const struct snapshot *before);

/*
 * Copies up to a zero or `from_size` bytes. What is no UTF-8 becomes U+FFFD, a
 * character that does not fit is left out whole.
 */
void snapshot_set_text(char *to, size_t to_size, const char *from, size_t from_size);

/* Names for people, metrics and files; "unknown" for what is none. */
const char *snapshot_drop_label(u32 drop);
const char *snapshot_sched_state_label(u32 state);
const char *snapshot_hist_label(u32 kind); /* of a collective: its operation */
const char *idle_cause_label(u32 cause);
const char *sched_class_label(u32 sched_class);
const char *sched_decision_label(u32 decision);
const char *sched_rule_label(u32 rule);
/* All of them, for texts that say which there are. */
#define SCHED_RULE_NAMES "feeder, loader, late-loader, spinner, helper, preempt, tier, place"
/* A rule by its name, of so many bytes; -EINVAL when there is none. */
int sched_rule_find(const char *name, size_t length, u32 *ret_rule);
