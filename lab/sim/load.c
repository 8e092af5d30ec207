// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of machines, ordinary tasks, and what is measured about all tasks. */
#include <stdio.h>
#include <string.h>
#include "sim/load.h"

#define TASKS_MAX	 65536
#define NR_GPUS		 8
#define START_NS	 (50 * NSEC_PER_MSEC) /* all tasks have started by then */
#define HOG_NS		 (10 * NSEC_PER_MSEC)
#define INTERACTIVE_NS	 (300 * NSEC_PER_USEC)
#define INTERACTIVE_WAIT (10 * NSEC_PER_MSEC)
#define PAIR_NS		 (100 * NSEC_PER_USEC)
#define KTHREAD_NS	 (20 * NSEC_PER_USEC)
#define PERIOD_US	 100000ULL /* of cpu.max */
#define KTHREAD_WAIT	 (20 * NSEC_PER_MSEC)

/* The first rows are scenarios of the lab with 2 CPUs, which a guest can check. */
#define LAB_MACHINE .cpus = 2, .llcs = 1, .nodes = 1, .warmup_ms = 1000, .milliseconds = 4000
#define LAB	    LAB_MACHINE, .jobs = 1
#define LAB_HOGS    .hogs = 8
#define LAB_STEP    .ranks = 1, .optimizer_us = 1000
#define LAB_LOADERS .loaders = 2, .batch_us = 14000
/* The load of the others grows with the machine, except for the jobs of a node with 8 GPUs. */
#define MACHINE(nr, caches, sockets)                                                               \
	.cpus = nr, .llcs = caches, .nodes = sockets, .interactive = 2 * (nr), .pairs = (nr) / 2,  \
	.kthreads = nr, .users = 8, .pinned = 16
#define SHORT	 .warmup_ms = 300, .milliseconds = 300
#define LONG	 .warmup_ms = 1000, .milliseconds = 1000 /* so that tasks become overdue */
#define JOBS(nr) .jobs = nr, .ranks = 8, .loaders = 12, .batch_us = 4000, .optimizer_us = 1000

/* clang-format off */
const struct row rows[] = {
	{ "quiet",     LAB, LAB_STEP, LAB_LOADERS },
	{ "noisy",     LAB, LAB_STEP, LAB_LOADERS, LAB_HOGS },
	{ "spin",      LAB, LAB_STEP, LAB_LOADERS, LAB_HOGS, .spins = true },
	{ "host-step", LAB, .ranks = 1, .optimizer_us = 15000, LAB_LOADERS, LAB_HOGS },
	/* Twice the CPU time of the lab's scenario: the guest has half its speed while both CPUs are busy. */
	{ "self",      LAB, LAB_STEP, .loaders = 8, .batch_us = 68000 },
	{ "straggler", LAB, .ranks = 2, .optimizer_us = 1000, .loaders = 1, .batch_us = 4000, LAB_HOGS, .slow_percent = 50 },
	{ "engine",    LAB_MACHINE, LAB_HOGS, .workers = 2, .core_us = 2000 },
	/* cpu.max: the first of two hogs may use a fifth of a CPU. */
	{ "limit",     LAB_MACHINE, .hogs = 2, .users = 2, .quota_percent = 20 },
	/* A user with more tasks on a CPU than that can run in a second, beside another user. */
	{ "bound",     LAB_MACHINE, .users = 2, .crowd = 400, .interactive = 1 },
	{ "2",         MACHINE(2, 1, 1),     SHORT, .hogs = 4, .jobs = 1, .ranks = 2, .loaders = 2, .batch_us = 4000, .optimizer_us = 1000 },
	{ "16",        MACHINE(16, 2, 1),    SHORT, .hogs = 32,  JOBS(1) },
	{ "64",        MACHINE(64, 8, 2),    SHORT, .hogs = 128,  JOBS(8) },
	{ "256",       MACHINE(256, 16, 2),  SHORT, .hogs = 512,  JOBS(8) },
	{ "384",       MACHINE(384, 32, 2),  SHORT, .hogs = 768,  JOBS(8) },
	{ "large",     MACHINE(224, 2, 2),   SHORT, .hogs = 448,  JOBS(8) },
	{ "cores",     MACHINE(128, 128, 2), SHORT, .hogs = 256,  JOBS(8) },
	{ "ordinary",  MACHINE(256, 16, 2),  SHORT, .hogs = 512 },
	{ "crowd",     MACHINE(384, 32, 2),  LONG,  .hogs = 20000,  JOBS(8) },
};
/* clang-format on */
const u32 nr_rows = sizeof(rows) / sizeof(rows[0]);

static struct {
	const struct row *row;
	u64 random;
	struct task *tasks[TASKS_MAX];
	u64 ran_before[TASKS_MAX];
	u32 nr_tasks;
	struct hist waits[KIND_NR], steps;
} load;

const struct row *load_row(void)
{
	return load.row;
}

u64 load_random(u64 below)
{
	u64 x = load.random += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (x ^ x >> 31) % below;
}

u64 load_about(u64 ns)
{
	return ns / 1000 * (800 + load_random(401));
}

static struct next hog_next(struct task *task)
{
	return (struct next){ NEXT_RUN, HOG_NS };
}

/* Tasks that run and sleep in turns. */
static struct next sleeper_next(struct task *task, u64 run_ns, u64 sleep_ns)
{
	task->at = !task->at;
	return task->at ? (struct next){ NEXT_RUN, load_about(run_ns) }
			: (struct next){ NEXT_SLEEP, load_about(sleep_ns) };
}

static struct next interactive_next(struct task *task)
{
	return sleeper_next(task, INTERACTIVE_NS, INTERACTIVE_WAIT);
}

static struct next kthread_next(struct task *task)
{
	return sleeper_next(task, KTHREAD_NS, KTHREAD_WAIT);
}

/* Two tasks that wake each other in turns, as over a pipe. */
static struct next pair_next(struct task *task)
{
	task->at = !task->at;
	if (task->at)
		return (struct next){ NEXT_RUN, PAIR_NS };
	task_wake(task->partner, task->cpu, true);
	return (struct next){ NEXT_BLOCK };
}

static struct next (*const programs[KIND_NR])(struct task *task) = {
	[KIND_HOG] = hog_next,		 [KIND_INTERACTIVE] = interactive_next,
	[KIND_PAIR] = pair_next,	 [KIND_KTHREAD] = kthread_next,
	[KIND_LAUNCHER] = launcher_next, [KIND_LOADER] = loader_next,
	[KIND_HELPER] = helper_next,	 [KIND_WORKER] = worker_next,
	[KIND_CORE] = core_next,
};

struct next load_next(struct task *task)
{
	return programs[task->kind](task);
}

void load_waited(struct task *task, u64 ns)
{
	if (ns > zernel.timeout_ms * NSEC_PER_MSEC)
		die("task %d waited for %llu ns: the watchdog ejects the scheduler", task->p.pid,
		    (unsigned long long)ns);
	hist_record(&load.waits[task->kind], ns);
}

void load_stepped(u64 ns)
{
	hist_record(&load.steps, ns);
}

static void on_start(void *arg, u64 cpu)
{
	task_start(arg, (u32)cpu);
}

void task_start_soon(struct task *task, u32 cpu)
{
	event_at(machine.now + load_random(START_NS), on_start, task, cpu);
}

struct task *task_new(enum kind kind, struct cgroup *cgroup, struct task *parent)
{
	struct task *task = allocate_for_task(sizeof(*task));

	if (load.nr_tasks == TASKS_MAX)
		die("more than %d tasks", TASKS_MAX);
	load.tasks[load.nr_tasks++] = task;
	task->kind = kind;
	task->mask = machine.all;
	task->p.nr_cpus_allowed = (int)machine.nr_cpus;
	task->p.pid = task->p.tgid = (int)load.nr_tasks + 1;
	task->p.group_leader = &task->p;
	task->p.real_parent = parent ? &parent->p : NULL;
	task->p.scx.weight = 100;
	if (kind == KIND_KTHREAD)
		task->p.flags |= PF_KTHREAD;
	task_begins(task, cgroup);
	return task;
}

static void pin(struct task *task, u32 cpu)
{
	task->mask = (struct mask){};
	mask_set(&task->mask, cpu, true);
	task->p.nr_cpus_allowed = 1;
}

static struct cgroup *cgroup_make(const char *name, u32 number, struct cgroup *parent)
{
	struct cgroup *cgroup = allocate(sizeof(*cgroup) + 2 * sizeof(struct cgroup *));
	bool is_limited = load.row->quota_percent && !strcmp(name, "user") && !number;
	struct scx_cgroup_init_args args = {
		.weight = 100,
		.bw_period_us = PERIOD_US,
		.bw_quota_us = is_limited ? PERIOD_US * load.row->quota_percent / 100 : ~0ULL,
	};
	static u64 id;
	char *text = allocate(32);

	snprintf(text, 32, "%s%u", name, number);
	cgroup->kn = allocate(sizeof(*cgroup->kn));
	*cgroup->kn = (struct kernfs_node){ .id = ++id, .name = text };
	cgroup->level = parent ? 1 : 0;
	cgroup->ancestors[0] = parent ? parent : cgroup;
	cgroup->ancestors[cgroup->level] = cgroup;
	if (zernel.cgroup_init(cgroup, &args))
		die("ops.cgroup_init failed");
	return cgroup;
}

static struct cgroup *cgroup_root(void)
{
	static struct cgroup *root;

	if (!root)
		root = cgroup_make("root", 0, NULL);
	return root;
}

/* Below the root, or the root itself if the row has no cgroups. */
static struct cgroup *cgroup_new(const char *name, u32 number)
{
	return load.row->users ? cgroup_make(name, number, cgroup_root()) : cgroup_root();
}

static void crowd_begins(struct cgroup *cgroup)
{
	for (u32 i = 0; i < load.row->crowd; i++) {
		struct task *hog = task_new(KIND_HOG, cgroup, NULL);

		pin(hog, 0);
		task_start_soon(hog, 0);
	}
}

/*
 * The tasks of a user are started by one shell, so they begin on its CPU. Without a balance
 * between caches they stay near it.
 */
static void user_makes(u32 number, u32 nr_users)
{
	const struct row *row = load.row;
	struct cgroup *cgroup = cgroup_new("user", number);
	u32 shell = (u32)load_random(row->cpus);

	for (u32 i = number; i < row->hogs; i += nr_users) {
		struct task *hog = task_new(KIND_HOG, cgroup, NULL);

		if (row->pinned && i % row->pinned == 0)
			pin(hog, (u32)load_random(row->cpus));
		task_start_soon(hog, shell);
	}
	if (number == nr_users - 1)
		crowd_begins(cgroup);
	for (u32 i = number; i < row->interactive; i += nr_users) {
		struct task *task = task_new(KIND_INTERACTIVE, cgroup, NULL);

		if (row->crowd)
			pin(task, 0);
		task_start_soon(task, shell);
	}
	for (u32 i = number; i < row->pairs; i += nr_users) {
		struct task *first = task_new(KIND_PAIR, cgroup, NULL);
		struct task *second = task_new(KIND_PAIR, cgroup, NULL);

		first->partner = second;
		second->partner = first;
		second->cpu = shell;
		task_start_soon(first, shell);
	}
}

void load_make(const struct row *row, u64 seed)
{
	u32 nr_users = row->users ? row->users : 1;

	load.row = row;
	load.random = seed;
	for (u32 i = 0; i < nr_users; i++)
		user_makes(i, nr_users);
	for (u32 i = 0; i < row->kthreads; i++) {
		struct task *task = task_new(KIND_KTHREAD, cgroup_root(), NULL);

		pin(task, i % row->cpus);
		task_start_soon(task, i % row->cpus);
	}
	jobs_make(NR_GPUS, cgroup_new);
	if (row->workers)
		engine_make(cgroup_new("engine", 0));
}

void load_reset(void)
{
	memset(load.waits, 0, sizeof(load.waits));
	load.steps = (struct hist){};
	for (u32 i = 0; i < load.nr_tasks; i++)
		load.ran_before[i] = load.tasks[i]->ran_ns;
}

void load_end(void)
{
	for (u32 i = 0; i < load.nr_tasks; i++)
		if (load.tasks[i]->state == TASK_QUEUED)
			load_waited(load.tasks[i], machine.now - load.tasks[i]->queued_since_ns);
}

const struct hist *load_waits(enum kind kind)
{
	return &load.waits[kind];
}

const struct hist *load_steps(void)
{
	return &load.steps;
}

u32 load_nr_tasks(void)
{
	return load.nr_tasks;
}

struct task *load_task(u32 i)
{
	return load.tasks[i];
}

u64 load_ran_ns(const struct task *task)
{
	return task->ran_ns - load.ran_before[task->p.pid - 2];
}
