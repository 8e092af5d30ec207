/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface of user space to the BPF programs. They are loaded from one skeleton and
 * configured before they run. Only this code writes BPF maps.
 */
#include <stdbool.h>
#include "abi/gpu_kernel.h"
#include "abi/lines.h"
#include "abi/oom.h"
#include "abi/procdb.h"
#include "abi/sched.h"
#include "abi/signals.h"
#include "abi/usage.h"
#include "base/macros.h"
#include "collect/library.h"
#include "core/comm.h"
#include "core/gpu_device.h"
#include "core/gpu_identity.h"
#include "core/hist.h"
#include "core/process.h"
#include "core/sched_stats.h"
#include "core/sequence.h"

struct kernel;
struct sched_ext_gap;

/* Called with the warnings of libbpf. */
typedef void (*kernel_log_fn)(const char *text);

/*
 * Opens, configures and loads the BPF programs, without those that the kernel cannot load; see
 * kernel_lacks(). -ENOSYS: the kernel lacks an essential feature, which was logged.
 */
int kernel_new(kernel_log_fn log, struct kernel **ret);
struct kernel *kernel_free(struct kernel *kernel);
DEFINE_CLEANUP(struct kernel, kernel_free);

/*
 * The features that are left out, a bit for each enum feature, and those of them whose programs the
 * kernel refused although it seemed to have all that they need.
 */
u32 kernel_lacks(const struct kernel *kernel, u32 *ret_refused);

bool kernel_has_scheduler(const struct kernel *kernel);
/* The first reason why the kernel cannot load the scheduler, or NULL. */
const struct sched_ext_gap *kernel_scheduler_gap(const struct kernel *kernel);

/*
 * True if the scheduler keeps the limits of cpu.max, because this kernel informs it of them.
 * Otherwise, zerneld must not schedule tasks that have such a limit.
 */
bool kernel_honors_limits(const struct kernel *kernel);

/*
 * Can be called repeatedly; the state of tasks and processes is kept. -EBUSY: another
 * scheduler is attached. -ESTALE: a CPU went online or offline during the attach; try
 * again. -EOPNOTSUPP: kernel_scheduler_gap() has the reason.
 */
int kernel_attach_scheduler(struct kernel *kernel);
void kernel_detach_scheduler(struct kernel *kernel);

/* Takes effect immediately and stays in effect after later attaches. */
void kernel_set_policy(struct kernel *kernel, const struct sched_policy *policy);

/* The decisions of the scheduler since it was loaded, and the run queue waits. */
int kernel_read_scheduler(const struct kernel *kernel, struct sched_stats *ret);

/* Constant parameters of the scheduler. */
u64 kernel_slice_ns(const struct kernel *kernel);
u64 kernel_max_wait_ns(const struct kernel *kernel);
/* Cgroups that found no room in the tables of the scheduler. */
u64 kernel_groups_left_out(const struct kernel *kernel);

/*
 * CPU time of all BPF programs since they were loaded. The kernel measures it only while a
 * descriptor from kernel_measure_run_time() is open; otherwise it is 0.
 */
u64 kernel_run_ns(const struct kernel *kernel);
int kernel_measure_run_time(int *ret_fd);

/* The exit of the scheduler, or NULL while it runs or when it was never attached. */
const struct sched_exit *kernel_scheduler_exit(const struct kernel *kernel);

/* True when the kernel requests a restart, for example after an unexpected hotplug. */
bool sched_exit_wants_restart(const struct sched_exit *sched_exit);
/* True when the scheduler ended without an error. */
bool sched_exit_is_clean(const struct sched_exit *sched_exit);

/* Signals: the threads of ML processes, and the libraries that they call. */
int kernel_attach_threads(struct kernel *kernel);
int kernel_attach_library(struct kernel *kernel, const struct library *library);
/* The most descriptors that the probes of a library need: before Linux 6.6, each has its own. */
u32 kernel_library_fds(const struct kernel *kernel, const struct library_probes *probes);
void kernel_detach_library(struct kernel *kernel, const struct library *library);
/* Attaches or detaches the calls of library_extra() by library->has_extra. */
int kernel_set_extra(struct kernel *kernel, const struct library *library);

/*
 * Rare events, in the order of their time on each CPU; with `timeline`, also every change
 * of a phase or role. Events do not wake the reader, so that they do not disturb the
 * observed tasks. The caller must poll often enough.
 */
typedef void (*kernel_event_fn)(void *ctx, const struct event *event);
int kernel_open_events(struct kernel *kernel, bool timeline, kernel_event_fn on_event, void *ctx);
void kernel_set_timeline(struct kernel *kernel, bool timeline);
int kernel_events_fd(const struct kernel *kernel); /* readable when there are events */
int kernel_read_events(struct kernel *kernel);

/*
 * Learning: reads observations of tasks and writes predictions for tasks of the same
 * profile. Open it before the scheduler is attached. Observations do not wake the reader
 * either. With NULL as prediction, an existing prediction is removed.
 */
typedef void (*kernel_observation_fn)(void *ctx, const struct procdb_observation *seen);
int kernel_open_learning(struct kernel *kernel, kernel_observation_fn on_seen, void *ctx);
int kernel_read_observations(struct kernel *kernel);
int kernel_predict(struct kernel *kernel, const struct procdb_key *key,
		   const struct procdb_record *prediction);

struct kernel_drops {
	u64 nr_events;
	u64 nr_processes; /* also those beyond the cap of their tenant, at each of their calls */
	u64 nr_frames;	  /* calls of a GPU runtime that were not followed */
	u64 nr_ledger; /* operations on GPU streams beyond the bound; events that are not known */
	u64 nr_launchers; /* beyond the bound of their process: nothing is promoted for them */
	u64 nr_samples;
	u64 nr_bpf_program_runs; /* of thread programs; the kernel skips a run that would nest */
	u64 nr_comms;		 /* communicators and splits */
	u64 nr_memory; /* allocations, mappings or contexts that did not fit or could not be read */
	u64 nr_observations; /* dropped observations, and threads that are not observed */
	u64 nr_torn;	     /* reads of a process that changed all the time */
	u64 nr_stacks;	     /* of out-of-memory errors: not read, or not as a whole */
	u64 nr_kernels;	     /* names of GPU kernels that did not fit */
};
struct kernel_drops kernel_drops(const struct kernel *kernel);

/* Sets the parameters of the phase detector. */
void kernel_set_phase_config(struct kernel *kernel, const struct phase_config *config);

/* Sets the utilization of a GPU from a sampler, for inferred evidence. */
void kernel_set_gpu_utilization(struct kernel *kernel, u32 gpu, u32 percent);
void kernel_forget_gpu_utilization(struct kernel *kernel, u32 gpu);
/* Sets the NUMA node of a GPU. The scheduler prefers this node for the tasks that feed the GPU. */
void kernel_set_gpu_node(struct kernel *kernel, u32 gpu, u32 node);

/* The interpreter of a process, in which the stack of an out-of-memory error is read. */
int kernel_set_python(struct kernel *kernel, int pidfd, const struct oom_python *python);
/*
 * -ENOENT: it is not known. After an exec it is not known either, unless the exec came while it was
 * set: then it is that of the program before.
 */
int kernel_read_python(const struct kernel *kernel, int pidfd, struct oom_python *ret);
/* A forked process has the same interpreter as its parent, or none. Both are pidfds. */
int kernel_copy_python(struct kernel *kernel, int parent, int child);
/*
 * Reads a frame and removes it, so that it has room in the table for the next errors. -ENOENT: the
 * latest error of the process has no such frame, or it was taken. -ESTALE: a frame of an earlier
 * error was removed.
 */
int kernel_take_oom_frame(struct kernel *kernel, const struct process_state *process, u32 index,
			  struct oom_frame *ret);
/* Gives the room of so many removed frames back to the tenants of the process. */
void kernel_release_oom_frames(struct kernel *kernel, const struct process_state *process, u32 nr);

/* Sets signals.collective_mapped: the process has a collective library or its buffers mapped. */
int kernel_set_collective(struct kernel *kernel, int pidfd, bool is_mapped);

/*
 * Evidence that a process uses a GPU: it has opened a GPU's device file. Set the devices
 * first. kernel_attach_devices() watches the opens of the whole machine from now on,
 * kernel_find_holders() finds earlier ones.
 */
void kernel_set_gpu_devices(struct kernel *kernel, const struct gpu_devices *devices);
int kernel_attach_devices(struct kernel *kernel);
int kernel_find_holders(struct kernel *kernel);
/* Looks at the open files of a process, and returns whether there is evidence now. */
bool kernel_holds_gpu(struct kernel *kernel, pid_t pid, int pidfd);

/* Calls `fn` for each user who wanted more than its part of a table: how often it was refused. */
typedef void (*kernel_quota_fn)(void *ctx, u32 uid, const u64 nr_refused[TENANT_TABLE_NR]);
void kernel_read_quotas(const struct kernel *kernel, kernel_quota_fn fn, void *ctx);

/*
 * All ML processes and their threads. The data of a process is consistent if process_is_whole().
 * A process that changes all the time may not be: then only its identity is valid.
 */
struct kernel_snapshot {
	struct process_state *processes;
	struct thread_record *threads;
	u32 nr_processes;
	u32 nr_threads;
};
/* Also sweeps when a sweep is due. */
int kernel_snapshot_read(struct kernel *kernel, struct kernel_snapshot *ret);
void kernel_snapshot_done(struct kernel_snapshot *snapshot);

/* The communicators of a process. -ENOENT: it never created one. */
int kernel_read_comms(struct kernel *kernel, pid_t pid, struct comms *ret);

/* The same for a process of a snapshot. -ESRCH: another process has its pid by now. */
int kernel_read_comms_of(struct kernel *kernel, const struct process_state *process,
			 struct comms *ret);

/*
 * The collectives of the communicator of a process that is at this place. Empty if it had none, or
 * if another communicator was at its place.
 */
void kernel_read_sequence(struct kernel *kernel, const struct process_state *process,
			  const struct comms *comms, u32 place, struct sequence *ret);

/* Reads one process only. -ENOENT: it has made no traced call yet. */
int kernel_read_process(const struct kernel *kernel, int pidfd, struct process_state *ret);

/*
 * What the BPF programs know about the devices of a process, without its places. gpu_identify()
 * finds its GPUs. The numbers are for the BPF programs and for snapshots. -ENOENT: not set yet.
 */
int kernel_read_gpu_facts(const struct kernel *kernel, const struct process_state *process,
			  struct gpu_facts *ret);
void kernel_set_gpu_numbers(struct kernel *kernel, const struct process_state *process,
			    const struct gpu_numbers *numbers);
int kernel_gpu_numbers(const struct kernel *kernel, const struct process_state *process,
		       struct gpu_numbers *ret);

/* Removes the map entries of processes whose exit was not seen. */
int kernel_sweep(struct kernel *kernel);
/* Number of map entries of all processes outside of task storage; 0 when all have exited. */
u64 kernel_nr_entries(const struct kernel *kernel);

/* The tasks that delayed ML processes, for all processes, unordered; the caller frees them. */
struct kernel_culprit {
	struct culprit_key key;
	u64 ns;
};
int kernel_read_culprits(struct kernel *kernel, struct kernel_culprit **ret, u32 *ret_nr);

/* -ENOENT: the histogram is empty. */
int kernel_read_hist(struct kernel *kernel, const struct process_state *process, u32 kind,
		     struct hist *ret);

/*
 * Idle time by stack of a process, from the first call to the second. -EOPNOTSUPP: this kernel
 * cannot sample. -EEXIST: the lines of this process are wanted already. -E2BIG: those of too many.
 */
int kernel_begin_lines(struct kernel *kernel, u32 tgid, const struct lines_process *process);
void kernel_end_lines(struct kernel *kernel, u32 tgid);
/* Draws the times between samples again. Call it ten times a second between the two. */
void kernel_vary_lines(struct kernel *kernel);
/* Of a process whose lines are wanted. */
struct lines_counts kernel_lines_counts(const struct kernel *kernel, u32 tgid);
/* Calls `fn` for each sum of the process, until it returns a negative value, which is returned. */
typedef int (*kernel_lines_fn)(void *ctx, const struct lines_sum_key *key,
			       const struct lines_sum *sum);
int kernel_read_lines(struct kernel *kernel, u32 tgid, kernel_lines_fn fn, void *ctx);
/* -ENOENT: it was not kept, or not copied. */
int kernel_read_stack(struct kernel *kernel, const struct lines_stack_key *key,
		      struct python_stack *ret);
int kernel_read_code(struct kernel *kernel, const struct lines_stack_key *stack,
		     const struct python_frame *frame, u32 part, struct python_code *ret);
/* The name of a GPU kernel. -ENOENT: it is not known. */
int kernel_read_gpu_kernel(const struct kernel *kernel, const struct gpu_kernel_key *key,
			   struct gpu_kernel *ret);

/*
 * What PyTorch's allocator of a process reports, from the first call to the second, for
 * USAGE_PARTS parts of the time. Errors are as above.
 */
int kernel_begin_usage(struct kernel *kernel, u32 tgid, const struct usage_process *process);
void kernel_end_usage(struct kernel *kernel, u32 tgid);
/* -ENOENT: nothing was reported about this GPU of the process. */
int kernel_read_usage(const struct kernel *kernel, const struct usage_key *key, struct usage *ret);
