/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The load: which tasks there are, and what each one does. */
#include "core/hist.h"
#include "sim/model.h"

enum kind {
	KIND_HOG,
	KIND_INTERACTIVE,
	KIND_PAIR,
	KIND_KTHREAD,
	KIND_LAUNCHER,
	KIND_LOADER,
	KIND_HELPER,
	KIND_WORKER,
	KIND_CORE,
	KIND_NR,
};

/* A machine and its load. */
struct row {
	const char *name;
	u32 cpus, llcs, nodes;
	u32 hogs, interactive, pairs, kthreads;
	u32 jobs, ranks, loaders; /* ranks of each job, loaders of each rank */
	u32 batch_us, optimizer_us;
	u32 slow_percent;     /* how much slower the device of rank 1 is */
	bool spins;	      /* syncs spin */
	u32 workers, core_us; /* of an engine, which is a further job; 0: none */
	u32 users;	      /* cgroups of ordinary tasks; 0: no cgroups at all */
	u32 quota_percent;    /* cpu.max of the first user, of one CPU; 0: none */
	u32 pinned;	      /* one in so many hogs is bound to a CPU; 0: none */
	u32 crowd; /* hogs of the last user that are bound to the first CPU, as all interactive
		      tasks are then; 0: none */
	u32 warmup_ms, milliseconds;
};

enum next_kind {
	NEXT_RUN,
	NEXT_SPIN, /* for a time of the clock, not for CPU time */
	NEXT_SLEEP,
	NEXT_BLOCK,
	NEXT_YIELD, /* and run when it is its turn again */
};

struct next {
	enum next_kind what;
	u64 ns;
};

struct job {
	u32 nr_ranks, nr_arrived;
	u64 nr_complete; /* collectives */
	u64 device_done_ns;
	struct rank *ranks;
	struct task *core; /* of an engine */
	struct cgroup *cgroup;
};

struct rank {
	struct job *job;
	struct task *launcher, *helper, **loaders;
	u32 nr_loaders;
	u32 *nr_ready;	/* batches of each loader */
	u64 nr_batches; /* that the launcher took; it takes those of the loaders in turns */
	bool launcher_waits;
	u64 nr_entered; /* collectives */
	u64 done_ns;	/* when the device is done; 0: not known yet */
	u64 step_since_ns;
};

extern const struct row rows[];
extern const u32 nr_rows;

/* What load.c and jobs.c share. */
const struct row *load_row(void);
u64 load_random(u64 below);
/* A time within 20 percent of `ns`. */
u64 load_about(u64 ns);
struct task *task_new(enum kind kind, struct cgroup *cgroup, struct task *parent);
void task_start_soon(struct task *task, u32 cpu);
void jobs_make(u32 nr_gpus, struct cgroup *(*cgroup_new)(const char *name, u32 number));
struct next launcher_next(struct task *task);
struct next loader_next(struct task *task);
struct next helper_next(struct task *task);
void engine_make(struct cgroup *cgroup);
struct next worker_next(struct task *task);
struct next core_next(struct task *task);
void load_stepped(u64 ns);

/* For the model. */
struct next load_next(struct task *task);
void load_waited(struct task *task, u64 ns);

/* For the report. */
void load_make(const struct row *row, u64 seed);
/* The warm-up is over. */
void load_reset(void);
/* The end: tasks that wait now have waited until now. */
void load_end(void);
const struct hist *load_waits(enum kind kind);
const struct hist *load_steps(void);
u32 load_nr_tasks(void);
struct task *load_task(u32 i);
/* CPU time since the warm-up. */
u64 load_ran_ns(const struct task *task);
