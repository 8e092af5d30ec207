/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot: all that zerneld knows at one moment. zerneld makes it, the socket carries
 * it, and exporters render it. It is plain data: whole numbers and text, no clock, and no
 * pointers except to its own arrays, which are allocated once. Items that do not fit are
 * counted as drops.
 *
 * Text is always valid UTF-8 with a terminating zero. Set it with snapshot_set_text(),
 * because the name of a task can contain any bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include "abi/idle.h"
#include "abi/sched.h"
#include "abi/signals.h"
#include "base/macros.h"
#include "core/book.h"
#include "core/cpu_limit.h"
#include "core/hist.h"
#include "core/job.h"
#include "core/job_names.h"
#include "core/phase.h"
#include "core/sequence.h"

#define SNAPSHOT_VERSION	2
/* The oldest version that can be read from a recording. */
#define SNAPSHOT_VERSION_OLDEST 1
#define SNAPSHOT_TEXT_LEN	128
/* A byte that is not valid UTF-8 is replaced by three bytes. */
#define SNAPSHOT_COMM_LEN	(3 * COMM_LEN)

/* The kinds of dropped items. */
enum snapshot_drop {
	DROP_EVENTS, /* this one and the next ones as in struct kernel_drops */
	DROP_PROCESSES,
	DROP_FRAMES,	/* calls of a GPU runtime that were not followed */
	DROP_LEDGER,	/* GPU streams and events that were not followed */
	DROP_LAUNCHERS, /* threads beyond the bound of launchers of a process */
	DROP_SAMPLES,
	DROP_BPF_PROGRAM_RUNS, /* the kernel skipped a run of a BPF program */
	DROP_COMMS,
	DROP_MEMORY,
	DROP_OBSERVATIONS,
	DROP_MAPS,		 /* library mappings that arrived too fast or exceeded a cap */
	DROP_PROFILES,		 /* new profiles that found no free slot */
	DROP_READS,		 /* reads of a process that changed too fast: it shows old values */
	DROP_GPU_SAMPLES,	 /* a driver did not answer in time */
	DROP_SNAPSHOT_PROCESSES, /* this one and the next five did not fit in a snapshot */
	DROP_SNAPSHOT_THREADS,
	DROP_SNAPSHOT_JOBS,
	DROP_SNAPSHOT_GPUS,
	DROP_SNAPSHOT_HISTS,
	DROP_SNAPSHOT_COMMS,
	DROP_STACKS,  /* Python stacks of out-of-memory errors */
	DROP_KERNELS, /* names of GPU kernels */
	DROP_NR,
};

/* The distributions of a process or job: each is the index in hists plus 1; 0: no distribution. */
struct snapshot_hists {
	u32 at[HIST_KIND_NR]; /* by enum hist_kind */
};

/* Accepted collective calls by operation, and the bytes that the rank passed. */
struct snapshot_collectives {
	u64 nr[COLLECTIVE_NR];
	u64 bytes[COLLECTIVE_NR];
};

/* What the counters of a rank count. */
struct snapshot_account {
	u64 nr_steps;
	u64 busy_ns;
	u64 open_ns;
	u64 idle_ns[IDLE_CAUSE_NR];
};

/* The account of the ended processes of a rank. */
struct snapshot_rank {
	u8 is_known; /* 0: the rank of these processes is not known */
	u8 pad[3];
	s32 rank;
	struct snapshot_account account;
};

/* Ranks of a job on one node; ended processes of more ranks count as if their rank was not known.
 */
#define SNAPSHOT_RANKS_MAX 16

struct snapshot_ranks {
	u32 nr;
	u32 pad;
	struct snapshot_rank ranks[SNAPSHOT_RANKS_MAX + 1];
};

/* The user of a job with processes of several users, or in a snapshot of an older zerneld. */
#define SNAPSHOT_UID_UNKNOWN (~0U)

enum snapshot_users {
	USERS_NONE, /* it has no process yet */
	USERS_ONE,
	USERS_SEVERAL,
};

/*
 * A job: its processes, in one or more cgroups (core/job.h). The measurements of ended processes
 * stay with the job as long as it has processes, and with the node forever. So a sum over processes
 * does not decrease when a process ends.
 */
struct snapshot_job {
	char name[JOB_NAME_LEN];
	char cgroup[JOB_CGROUP_LEN];	   /* of the job itself; it identifies the job */
	char container[JOB_CONTAINER_LEN]; /* of its first process; empty: it is in no container */
	u32 kind;			   /* enum job_kind */
	u32 users;			   /* enum snapshot_users; only zerneld knows it */
	u32 uid; /* of all its processes; SNAPSHOT_UID_UNKNOWN: they have several users */
	u32 nr_names_tries; /* how often its names were asked for; only zerneld knows it */
	u64 names_due_ns;   /* when to ask again */
	struct job_names names;
	u64 started_ms;	 /* since the epoch: its first process used a GPU; 0: not known */
	u64 ended_ms;	 /* its last process ended; 0: it has processes */
	u64 peak_bytes;	 /* the largest peak of the GPU memory of one process */
	u64 nr_left_out; /* of an ended job: ended processes without details */
	struct snapshot_hists gone;
	struct snapshot_collectives gone_collectives;
	struct snapshot_ranks gone_ranks;
};

/* It is not always known which GPU of the machine a process uses: core/gpu_identity.h. */
#define SNAPSHOT_GPU_UNKNOWN (~0U)

/* The memory of a process on one GPU, or on all GPUs with an unknown number together. */
struct snapshot_memory {
	u32 gpu; /* the number of the GPU on this machine, or SNAPSHOT_GPU_UNKNOWN */
	u32 pad;
	struct memory_book book;
};

/* A culprit of idle time: a task that ran instead, or the disk that was waited for. */
struct snapshot_culprit {
	u32 cause; /* enum idle_cause */
	u32 pad;
	u64 ns;
	char name[SNAPSHOT_COMM_LEN];
};

#define OOM_OTHERS_MAX 8

struct snapshot_oom_other {
	u32 pid; /* 0: a process of another user, whose name is hidden */
	u32 uid;
	u64 bytes;
	char comm[SNAPSHOT_COMM_LEN];
};

/*
 * The latest out-of-memory error of a process, by PyTorch's own report (core/oom.h), and the
 * memory of the other processes on this GPU soon after it.
 */
struct snapshot_oom {
	u64 nr; /* errors so far; 0: none, and the other fields are not valid */
	u64 time_ns;
	u64 time_ms; /* since the epoch */
	u64 asked_bytes;
	u64 allocated_bytes;
	u64 reserved_bytes;
	u32 gpu; /* the number of the GPU on this machine, or SNAPSHOT_GPU_UNKNOWN */
	u32 tid;
	u64 others_ns;	  /* time of the snapshot that had the other processes; 0: not known */
	u64 others_bytes; /* of all of them */
	u32 nr_holders;	  /* all of them */
	u32 nr_others;
	struct snapshot_oom_other others[OOM_OTHERS_MAX]; /* sorted by bytes, largest first */
};

/* The part of the task state (core/task.h) that struct snapshot_process itself does not have. */
struct snapshot_task {
	u32 known; /* 0: the snapshot is from an older zerneld and lacks the other fields */
	u32 gpu_utilization;  /* percent */
	u32 io_wait_permille; /* share of time in I/O wait, at most 1000 */
	u32 nr_futex_waits;   /* in the last sampling window */
	u32 gpu;	  /* the number of its main GPU on this machine, or SNAPSHOT_GPU_UNKNOWN */
	u32 gpu_instance; /* of the part of this GPU (MIG), or SNAPSHOT_GPU_UNKNOWN */
	u32 compute_instance;
	u32 gpu_basis; /* enum gpu_basis */
	u8 is_ml;
	u8 collective_mapped;
	u8 pad[6];
	u64 last_sync_ns; /* 0: never */
	u64 burst_ns;
	u64 phase_since_ns;
};

struct snapshot_process {
	u32 pid;
	u32 job; /* index in jobs plus 1; 0: no job */
	u64 start_ns;
	u32 nr_ranks; /* 0: the rank is not known */
	s32 rank;
	u32 phase;
	u32 launcher_tid; /* 0: no thread launched yet */
	u32 consumer_pid; /* of a loader process: its consumer; else 0 */
	u32 nr_memory;
	u32 nr_culprits;
	u32 step_basis;	    /* enum step_basis: how steps were found */
	u32 gpu_evidence;   /* enum gpu_evidence */
	u32 uid;	    /* of its user; SNAPSHOT_UID_UNKNOWN: an older zerneld */
	u32 launcher_doing; /* enum thread_doing */
	u32 pad;
	u64 launcher_call_since_ns;	       /* 0: the launcher is in no traced call */
	char launcher_call[SNAPSHOT_TEXT_LEN]; /* the symbol of the innermost one, or empty */
	u64 started_ms; /* this and the next as in struct snapshot_job, for zerneld only */
	u64 ended_ms;
	char step[JOB_STEP_LEN]; /* of its Slurm job: "0", "batch"; or empty */
	u64 phase_ns[PHASE_NR];	 /* includes the current phase up to now */
	u64 nr_transitions;
	u64 nr_steps;
	/*
	 * Since the first launch and up to now: the GPU certainly worked for this process; it
	 * certainly had no work of this process; neither is known. The last two are divided by
	 * what the launcher did.
	 */
	u64 busy_ns;
	u64 idle_ns[IDLE_CAUSE_NR];
	u64 open_ns[IDLE_CAUSE_NR];
	u64 blocked_ns; /* the part of open_ns[IDLE_CPU] in which the GPU certainly worked */
	u64 stepped_ns; /* time of the snapshot that first had its last step; 0: no step */
	/*
	 * Its part in the counters of its rank. It never decreases, so that a sum over processes
	 * is a counter. The times above can: when a long sleep ends, its time may move to another
	 * cause. snapshot_carry() computes it as `most` - `moved`, which only zerneld knows: the
	 * maximum of each value so far, and what the process counted under an earlier rank.
	 */
	struct snapshot_account counted;
	struct snapshot_account most;
	struct snapshot_account moved;
	struct snapshot_task task;
	char comm[SNAPSHOT_COMM_LEN];
	struct snapshot_memory memory[GPU_MAX];		/* at most one entry per GPU */
	struct snapshot_culprit culprits[CULPRITS_MAX]; /* sorted by time, largest first */
	struct snapshot_hists hists;
	struct snapshot_collectives collectives;
	struct snapshot_oom oom;
};

struct snapshot_thread {
	u32 tid;
	u32 pid;
	u32 role;
	u32 pad;
	char comm[SNAPSHOT_COMM_LEN];
};

struct snapshot_call {
	u64 entered_ns;
	u64 returned_ns; /* 0: the call has not returned; the GPU may finish its work later */
	u64 bytes;
	u32 operation;
	u32 pad;
};

#define SNAPSHOT_IDENTITY_LEN 24

/* A communicator of a process (core/comm.h), and its latest collectives. */
struct snapshot_comm {
	u32 pid;
	u32 rank;
	u32 nr_ranks; /* 0: rank and size are not known */
	u32 nr_calls;
	char identity[SNAPSHOT_IDENTITY_LEN]; /* the same on all nodes; empty: not known */
	u64 made_ns;
	u64 nr; /* number of the latest collective that was entered; 0: none yet */
	struct snapshot_call calls[SEQUENCE_KEPT]; /* latest first: the first one has number nr */
	u8 is_world; /* the rank of the process is its rank in this communicator */
	u8 pad[7];
};

/* The fields of a GPU that are valid. A field that is absent is not the same as zero. */
enum snapshot_gpu_field {
	SNAPSHOT_GPU_BUSY = 1 << 0,
	SNAPSHOT_GPU_MEMORY_USED = 1 << 1,
	SNAPSHOT_GPU_MEMORY_TOTAL = 1 << 2,
	SNAPSHOT_GPU_ACTIVE = 1 << 3,
	SNAPSHOT_GPU_NUMA_NODE = 1 << 4,
	SNAPSHOT_GPU_BUSY_TIME = 1 << 5,
};

struct snapshot_gpu {
	u32 gpu; /* the number of the GPU on this machine */
	u32 valid;
	u32 busy_percent;
	u32 numa_node; /* the scheduler places the tasks of this GPU near this node */
	u64 memory_used_bytes;
	u64 memory_total_bytes;
	/*
	 * The time in which its multiprocessors were active, since zerneld watches it. While
	 * a collective waits for other ranks, a GPU is busy but not active.
	 */
	u64 active_ns;
	u64 active_at_ns; /* the time of that sample, in CLOCK_MONOTONIC */
	/*
	 * The time in which any kernel ran, by a counter of the GPU, from busy_since_ns to
	 * busy_at_ns, and in steps of busy_period_ns. Where time was not measured, the sum starts
	 * again.
	 */
	u64 busy_ns;
	u64 busy_since_ns;
	u64 busy_at_ns;
	u64 busy_period_ns;
	u32 busy_counter; /* enum gpu_counter */
	u32 pad;
	char uuid[SNAPSHOT_TEXT_LEN];  /* empty if not known */
	char model[SNAPSHOT_TEXT_LEN]; /* or the name of its driver; empty if not known */
};

enum snapshot_sched_state {
	SCHED_OFF, /* never attached, or detached without an error */
	SCHED_ATTACHED,
	SCHED_EJECTED,
	SCHED_WAITING, /* for an ML process */
	SCHED_STATE_NR,
};

/* What zerneld acts with now. */
enum snapshot_actuator {
	ACTUATOR_NONE,
	ACTUATOR_SCHED_EXT, /* the scheduler is attached */
	ACTUATOR_NICE,	    /* zerneld sets nice values */
	ACTUATOR_NR,
};

/* The decisions of the scheduler for tasks of one class. */
struct snapshot_class {
	u64 nr[DECISION_NR];
	u64 ran_ns;
	struct hist runqueue_wait;
};

struct snapshot_sched {
	u32 state;
	u32 rules_off;	      /* a bit per enum sched_rule */
	u32 reserved_percent; /* of each CPU, for ordinary tasks */
	/*
	 * A CPU limit of a cgroup that the scheduler cannot keep. While the scheduler is off, it is
	 * the reason why zerneld refuses to attach it.
	 */
	u32 limit;    /* enum cpu_limit */
	u32 actuator; /* enum snapshot_actuator */
	u32 pad;
	u64 slice_ns;
	u64 max_wait_ms; /* the longest time that a task may wait before it runs */
	u64 nr_ejected;
	u64 nr_groups_left_out; /* cgroups that count as a part of their parent */
	/* Of the nice actuator: daemon/nice.h */
	u64 nr_nice_threads;
	u64 nr_nice_changes;
	u64 nr_nice_dropped;
	u64 nr_nice_lost;
	struct snapshot_class classes[CLASS_NR];
	char reason[SNAPSHOT_TEXT_LEN]; /* why the scheduler ended, if it did */
};

struct snapshot_learning {
	u64 nr_profiles;
	u64 nr_confident;
	u64 nr_observations;
};

#define SNAPSHOT_STEPPED_LEN 256

/* The probes in runtime libraries. */
struct snapshot_probes {
	u64 nr_libraries;	   /* files that have probes now */
	u64 nr_probes;		   /* probed functions in these files */
	u64 nr_processes;	   /* processes that map such a file */
	u64 nr_failed;		   /* times that a file could not be read or probed */
	u64 nr_libraries_left_out; /* times that a file did not fit or exceeded a cap */
	u64 nr_processes_left_out;
	u64 nr_stepped; /* probes that the kernel single-steps, which costs more */
	char stepped[SNAPSHOT_STEPPED_LEN]; /* the names of the first of these */
};

/* The resources that Zernel itself uses. */
struct snapshot_cost {
	u64 cpu_ns; /* of zerneld, user and system time */
	u64 rss_bytes;
	u64 bpf_run_ns;
	u64 loop_longest_ns; /* longest iteration of the loop of zerneld so far */
};

/* The capacity of a snapshot. */
struct snapshot_limits {
	u32 nr_jobs;
	u32 nr_processes;
	u32 nr_threads;
	u32 nr_gpus;
	u32 nr_hists;
	u32 nr_comms;
};

#define SNAPSHOT_LIMITS_DEFAULT                                                                    \
	((struct snapshot_limits){                                                                 \
		.nr_jobs = 256,                                                                    \
		.nr_processes = MAX_PROCESSES,                                                     \
		.nr_threads = 8192,                                                                \
		.nr_gpus = 64,                                                                     \
		.nr_hists = 1024,                                                                  \
		.nr_comms = 1024,                                                                  \
	})

/* The largest snapshot that can be made or read. */
#define SNAPSHOT_LIMITS_MAX                                                                        \
	((struct snapshot_limits){                                                                 \
		.nr_jobs = 4096,                                                                   \
		.nr_processes = 4096,                                                              \
		.nr_threads = 65536,                                                               \
		.nr_gpus = 256,                                                                    \
		.nr_hists = 16384,                                                                 \
		.nr_comms = 16384,                                                                 \
	})

/* A user who wanted more than the part of a table that one user can have, and what was refused. */
struct snapshot_quota {
	u32 uid;
	u64 nr_processes; /* calls of processes that are not followed */
	u64 nr_memory;	  /* allocations, mappings and contexts */
	u64 nr_scans;	  /* searches of processes for libraries that were refused or failed */
};

#define SNAPSHOT_QUOTAS_MAX 16

struct snapshot {
	u64 time_ms;	  /* since the epoch */
	u64 monotonic_ns; /* CLOCK_MONOTONIC, like all other times here */
	char host[SNAPSHOT_TEXT_LEN];
	char version[SNAPSHOT_TEXT_LEN]; /* of zerneld */
	char kernel[SNAPSHOT_TEXT_LEN];	 /* release of the kernel */
	u32 lacks;   /* a bit for each enum feature that is left out on this kernel */
	u32 refused; /* those of them whose BPF programs the kernel refused */

	struct snapshot_limits limits;
	struct snapshot_job *jobs;
	struct snapshot_process *processes;
	struct snapshot_thread *threads;
	struct snapshot_gpu *gpus;
	struct hist *hists;
	struct snapshot_comm *comms;
	u32 nr_jobs;
	u32 nr_processes;
	u32 nr_threads;
	u32 nr_gpus;
	u32 nr_hists;
	u32 nr_comms;
	u32 nr_role[ROLE_NR];	    /* threads per role, including dropped ones */
	struct snapshot_hists gone; /* see struct snapshot_job */
	struct snapshot_collectives gone_collectives;
	struct snapshot_ranks gone_ranks; /* of processes without a job */
	u64 nr_transitions;		  /* of all current and ended processes */

	struct phase_config phase_detection; /* the settings of the phase detector */
	struct snapshot_sched sched;
	struct snapshot_learning learning;
	struct snapshot_probes probes;
	struct snapshot_cost cost;
	u64 nr_dropped[DROP_NR];
	struct snapshot_quota over_quota[SNAPSHOT_QUOTAS_MAX]; /* of the users with most refusals */
	u32 nr_over_quota;
	u8 is_own; /* only what belongs to one user: core/snapshot_own.h */
	u8 pad[7];
	u64 nr_restarts;      /* of processes that zerneld asks, after one failed or hung */
	u64 nr_gpu_conflicts; /* GPUs whose names by the runtime and by the driver differed */
};

/* Makes an empty snapshot and allocates all its memory. -E2BIG: above SNAPSHOT_LIMITS_MAX. */
int snapshot_new(const struct snapshot_limits *limits, struct snapshot **ret);
struct snapshot *snapshot_free(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot, snapshot_free);

/* Frees all but the times and the jobs, whose distributions are lost. */
void snapshot_keep_jobs(struct snapshot *snapshot);
/* Empties the snapshot and keeps its limits. */
void snapshot_clear(struct snapshot *snapshot);

/* Each returns NULL and counts the drop if there is no room. Other fields of a new item are 0. */
struct snapshot_process *snapshot_add_process(struct snapshot *snapshot, u32 pid);
struct snapshot_thread *snapshot_add_thread(struct snapshot *snapshot, u32 tid, u32 role);
struct snapshot_gpu *snapshot_add_gpu(struct snapshot *snapshot, u32 gpu);
struct snapshot_comm *snapshot_add_comm(struct snapshot *snapshot, u32 pid);
/* The value of snapshot_process.job for this cgroup. Adds the job if it is new; 0: no room. */
u32 snapshot_add_job(struct snapshot *snapshot, const char *cgroup, const char *name);
/* Adds a process to the sums of its job, if it has one. Call it again when the process changes. */
void snapshot_join_job(struct snapshot *snapshot, const struct snapshot_process *process);
/* A distribution of a process or job. Adds it if it is new. */
struct hist *snapshot_add_hist(struct snapshot *snapshot, struct snapshot_hists *hists, u32 kind);

/* Sets the number of phase changes of a process, and updates the total of the node. */
void snapshot_set_transitions(struct snapshot *snapshot, struct snapshot_process *process, u64 nr);

/* NULL if there is no such distribution. */
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
 * True if nothing proves that the process uses a GPU: the scheduler promotes none of its
 * threads. A loader needs no evidence of its own: that of its consumer counts.
 */
bool snapshot_is_unproven(const struct snapshot *snapshot, const struct snapshot_process *process);

/* Sets the other processes on the GPU of an out-of-memory error from this snapshot. */
void snapshot_oom_find_others(const struct snapshot *snapshot, struct snapshot_process *process);
/* Removes the names of processes of other users. */
void snapshot_oom_hide_others(struct snapshot_process *process);

/* Adds an ended job to a later one. */
void snapshot_job_add(struct snapshot_job *to, const struct snapshot_job *from);
/* Adds the account of a process that has ended. */
void snapshot_ranks_add(struct snapshot_ranks *to, const struct snapshot_process *process);
/*
 * Updates the counters of a process after its times. Only for a process that ends between two
 * snapshots: snapshot_carry() does it for the others.
 */
void snapshot_recount(struct snapshot_process *process);

void snapshot_account_add(struct snapshot_account *to, const struct snapshot_account *from);

/*
 * Adds the refusals of a user, who may be in the list. It is sorted, and has the users with most
 * refusals.
 */
void snapshot_add_quota(struct snapshot *snapshot, const struct snapshot_quota *quota);

/*
 * Carries over from the previous snapshot: the measurements of processes that have ended
 * since, what counters must remember, and the number of dropped items so far. Call it once, after
 * all processes and their distributions are added.
 */
void snapshot_carry(struct snapshot *snapshot, const struct snapshot *before);

/*
 * Copies up to a zero or `from_size` bytes. Each byte that is not valid UTF-8 becomes U+FFFD.
 * A character that does not fit is not copied.
 */
void snapshot_set_text(char *to, size_t to_size, const char *from, size_t from_size);

/* Names for output, metrics and files; "unknown" for an invalid value. */
const char *snapshot_drop_label(u32 drop);
const char *snapshot_sched_state_label(u32 state);
const char *snapshot_actuator_label(u32 actuator);
const char *snapshot_hist_label(u32 kind); /* of a collective: the operation */
const char *idle_cause_label(u32 cause);
const char *step_basis_label(u32 basis);
/* It uses a GPU, and it is not known which one. */
bool snapshot_gpu_is_unknown(const struct snapshot_process *process);

const char *gpu_evidence_label(u32 evidence);
const char *gpu_basis_label(u32 basis);
const char *gpu_counter_label(u32 counter);
const char *sched_class_label(u32 sched_class);
const char *sched_decision_label(u32 decision);
const char *sched_rule_label(u32 rule);
/* The names of all rules, for help texts and errors. */
#define SCHED_RULE_NAMES                                                                           \
	"feeder, loader, late-loader, spinner, helper, preempt, tier, place, critical, poller, "   \
	"opening"
/* Finds a rule by its name of `length` bytes; -EINVAL: no rule has this name. */
int sched_rule_find(const char *name, size_t length, u32 *ret_rule);
