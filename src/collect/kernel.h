/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel side as user space sees it: loaded from one skeleton, configured
 * before it runs, and the only place that writes kernel maps.
 */
#include <stdbool.h>
#include "abi/procdb.h"
#include "abi/sched.h"
#include "abi/signals.h"
#include "base/macros.h"
#include "collect/library.h"
#include "core/comm.h"
#include "core/hist.h"
#include "core/process.h"
#include "core/sched_stats.h"

struct kernel;
struct sched_ext_gap;

/* Called with what libbpf has to say when something goes wrong. */
typedef void (*kernel_log_fn)(const char *text);

/*
 * Opens, configures and loads. On a kernel that cannot load the scheduler all but
 * the scheduler is loaded; kernel_has_scheduler() tells.
 */
int kernel_new(kernel_log_fn log, struct kernel **ret);
struct kernel *kernel_free(struct kernel *kernel);
DEFINE_CLEANUP(struct kernel, kernel_free);

bool kernel_has_scheduler(const struct kernel *kernel);
/* The first reason why the kernel cannot load the scheduler; NULL when it can. */
const struct sched_ext_gap *kernel_scheduler_gap(const struct kernel *kernel);

/*
 * As often as one likes; what is known of tasks and processes stays. -EBUSY: another
 * scheduler is attached. -ESTALE: a CPU came or went meanwhile, try again. -EOPNOTSUPP:
 * kernel_scheduler_gap() says why.
 */
int kernel_attach_scheduler(struct kernel *kernel);
void kernel_detach_scheduler(struct kernel *kernel);

/* Holds at once, and for every attach from now on. */
void kernel_set_policy(struct kernel *kernel, const struct sched_policy *policy);

/* What it has decided since it was loaded, and how long tasks had to wait. */
int kernel_read_scheduler(const struct kernel *kernel, struct sched_stats *ret);

/* What it runs by and does not change. */
u64 kernel_slice_ns(const struct kernel *kernel);
u64 kernel_max_wait_ns(const struct kernel *kernel);

/*
 * CPU time of all programs since they were loaded; 0 unless the kernel measures it,
 * which it does as long as somebody holds what kernel_measure_run_time() gives.
 */
u64 kernel_run_ns(const struct kernel *kernel);
int kernel_measure_run_time(int *ret_fd);

/* How the scheduler ended, or NULL while it runs (or was never attached). */
const struct sched_exit *kernel_scheduler_exit(const struct kernel *kernel);

/* True when the kernel asks for a fresh start, as after an unforeseen hotplug. */
bool sched_exit_wants_restart(const struct sched_exit *sched_exit);
/* True when it was taken down in good order and not by an error. */
bool sched_exit_is_clean(const struct sched_exit *sched_exit);

/* Signals: the threads of ML processes, and the libraries they call. */
int kernel_attach_threads(struct kernel *kernel);
int kernel_attach_library(struct kernel *kernel, const struct library *library);
void kernel_detach_library(struct kernel *kernel, const struct library *library);

/*
 * Rare events, in order of their time on each CPU; with `timeline` every phase and role too.
 * They wake nobody, so that they do not disturb what they tell of: look often enough.
 */
typedef void (*kernel_event_fn)(void *ctx, const struct event *event);
int kernel_open_events(struct kernel *kernel, bool timeline, kernel_event_fn on_event, void *ctx);
void kernel_set_timeline(struct kernel *kernel, bool timeline);
int kernel_events_fd(const struct kernel *kernel); /* readable when there are some */
int kernel_read_events(struct kernel *kernel);

/*
 * Learning: what was observed of tasks, and what to expect of others of their kind.
 * Open it before the scheduler is attached; nobody is woken here either. Without a
 * prediction, one that is there is withdrawn.
 */
typedef void (*kernel_observation_fn)(void *ctx, const struct procdb_observation *seen);
int kernel_open_learning(struct kernel *kernel, kernel_observation_fn on_seen, void *ctx);
int kernel_read_observations(struct kernel *kernel);
int kernel_predict(struct kernel *kernel, const struct procdb_key *key,
		   const struct procdb_record *prediction);

struct kernel_drops {
	u64 nr_events;
	u64 nr_processes;
	u64 nr_frames;
	u64 nr_samples;
	u64 nr_bpf_program_runs; /* on threads; the kernel skips a run that would nest */
	u64 nr_comms;		 /* communicators and splits */
	u64 nr_memory; /* allocations, mappings or contexts that did not fit or could not be read */
	u64 nr_observations; /* not told, and threads that are not learned from */
};
struct kernel_drops kernel_drops(const struct kernel *kernel);

/* What the phase detector decides by, from now on. */
void kernel_set_phase_config(struct kernel *kernel, const struct phase_config *config);

/* What a sampler says of a device, for inferred evidence. */
void kernel_set_gpu_utilization(struct kernel *kernel, u32 gpu, u32 percent);
void kernel_forget_gpu_utilization(struct kernel *kernel, u32 gpu);
/* The NUMA node that a GPU is at: the scheduler keeps the tasks that feed it there. */
void kernel_set_gpu_node(struct kernel *kernel, u32 gpu, u32 node);

/* Whether a process has a collective library or its buffers mapped: signals.collective_mapped. */
int kernel_set_collective(struct kernel *kernel, int pidfd, bool is_mapped);

/* All ML processes and their threads at one time, each process consistent in itself. */
struct kernel_snapshot {
	struct process_state *processes;
	struct thread_record *threads;
	u32 nr_processes;
	u32 nr_threads;
};
/* Sweeps now and then. -EAGAIN: processes changed too fast to be read. */
int kernel_snapshot_read(struct kernel *kernel, struct kernel_snapshot *ret);
void kernel_snapshot_done(struct kernel_snapshot *snapshot);

/* The communicators of a process. -ENOENT: it never made one. */
int kernel_read_comms(struct kernel *kernel, pid_t pid, struct comms *ret);

/* One process, without looking at any other. -ENOENT: it made no call yet. */
int kernel_read_process(const struct kernel *kernel, int pidfd, struct process_state *ret);

/*
 * The machine's number of a device that the process counts as `device`. Known
 * shortly after it first used one; -ENOENT before, and where it has no such device.
 */
int kernel_gpu_number(const struct kernel *kernel, const struct process_state *process, u32 device,
		      u32 *ret);

/* Removes what processes left behind whose end was not seen. */
int kernel_sweep(struct kernel *kernel);
/* How much there is of all processes outside of their own state; none when all are gone. */
u64 kernel_nr_entries(const struct kernel *kernel);

/* Who stood in the way of whom, of all processes, in no order; the caller frees them. */
struct kernel_culprit {
	struct culprit_key key;
	u64 ns;
};
int kernel_read_culprits(struct kernel *kernel, struct kernel_culprit **ret, u32 *ret_nr);

/* -ENOENT: nothing was recorded. */
int kernel_read_hist(struct kernel *kernel, const struct process_state *process, u32 kind,
		     struct hist *ret);
