/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A model of the kernel around the scheduler: CPUs, queues, idle masks, ticks, timers and
 * wakeups, in virtual time. It follows kernel/sched/ext.c of 6.18 where that decides when an
 * operation of the scheduler is called and with what. The code of the scheduler takes no
 * virtual time: its costs are counted (count.h), not simulated.
 */
#include "bpf/compat.bpf.h"
#include "abi/sched.h"

#define TICK_NS		 (4 * NSEC_PER_MSEC)
#define DEFAULT_SLICE_NS (20 * NSEC_PER_MSEC)
#define IPI_NS		 NSEC_PER_USEC
#define STORAGES_MAX	 16
#define SYSCALL_OF_WAIT	 202
#define IN_USER_MODE	 (-1L)

struct mask {
	unsigned long bits[MAX_CPUS / 64];
};

struct dsq {
	u64 id, seq;
	u64 nr_locked; /* how often its lock was taken since the warm-up */
	u32 nr;
	bool is_local, is_ordered; /* by virtual time; then it is also a tree */
	struct task *first, *last, *root;
};

enum task_state {
	TASK_ASLEEP,
	TASK_QUEUED,
	TASK_RUNNING,
};

struct task {
	struct task_struct p; /* first: the scheduler has pointers to it */
	struct {
		long orig_ax;
	} regs;
	struct mask mask;
	void *storage[STORAGES_MAX];
	u32 cpu;
	enum task_state state;

	struct dsq *dsq;
	struct task *before, *after, *left, *right;
	u64 seq;
	u32 priority; /* in the tree, which is a treap */

	/* What an operation decided, carried out when it returns. */
	bool is_inserted, by_vtime;
	u64 insert_dsq, insert_flags;

	u64 exec_since_ns, queued_since_ns, ran_ns;
	u64 burst_ns; /* CPU time until it decides what to do next */
	u64 spins_until_ns;
	u64 turn; /* an event of an earlier turn is void */

	u32 kind;   /* load.h */
	u32 at;	    /* position in its program */
	u32 number; /* of a loader in its rank */
	struct rank *rank;
	struct task *partner;
};

struct cpu {
	u32 id, llc; /* the cache itself, not a shard */
	bool has_tick, is_kicked, is_scheduling;
	struct task *curr; /* NULL: idle */
	struct dsq local;
	struct task idle; /* what an interrupt finds as the current task */
	u32 last_picked;  /* the kernel distributes picks of idle CPUs */
};

/* Helpers of BPF have no argument for the machine, so there is one. */
extern struct machine {
	u64 now;
	u32 nr_cpus, nr_llcs, nr_nodes;
	u32 here; /* CPU that executes the current operation */
	struct cpu *cpus;
	struct mask idle, all, *llcs, *nodes;
} machine;

extern struct sched_ext_ops zernel;
extern struct topology topology;

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t size);
/* Memory of tasks: it moves with the task and is not a part of a CPU or a cache. */
void *allocate_for_task(size_t size);
bool is_task_memory(const void *at);

void event_at(u64 at, void (*act)(void *arg, u64 turn), void *arg, u64 turn);
void events_run(u64 until);

static inline struct task *task_of(const struct task_struct *p)
{
	return (struct task *)p;
}

static inline bool mask_has(const struct mask *mask, u32 cpu)
{
	return mask->bits[cpu / 64] >> (cpu % 64) & 1;
}

static inline void mask_set(struct mask *mask, u32 cpu, bool on)
{
	mask->bits[cpu / 64] &= ~(1UL << (cpu % 64));
	mask->bits[cpu / 64] |= (unsigned long)on << (cpu % 64);
}

/* Queues. */
void dsq_make(struct dsq *dsq, u64 id, bool is_local);
struct dsq *dsq_find(u64 id);
void dsq_insert(struct dsq *dsq, struct task *task, bool by_vtime, bool at_head);
void dsq_remove(struct task *task);
/* Carries out what the operation decided for the task; false if it decided nothing. */
bool insert_finish(struct task *task);
/* The largest number of locks of one queue since the last call. */
u64 dsqs_most_locked(void);

/* The order of a queue by virtual time. Returns the steps. */
u64 tree_insert(struct task **root, struct task *task);
void tree_remove(struct task **root, struct task *task);
/* The task after which this one belongs; NULL if it is the first. */
struct task *tree_before(struct task *root, const struct task *task);

/* CPUs. */
void cpus_make(u32 nr_cpus, u32 nr_llcs, u32 nr_nodes);
void cpu_kick(struct cpu *cpu);
void cpu_preempt(struct cpu *cpu);
/* A task enters the local queue of a CPU: what the kernel does then. */
void cpu_got_task(struct cpu *cpu, struct task *task, u64 enq_flags);
/* A new task, with its affinity and its first CPU in `task`. It sleeps. */
void task_begins(struct task *task, struct cgroup *cgroup);
/* `is_call`: the task that runs on the CPU wakes it, otherwise an interrupt there does. */
void task_wake(struct task *task, u32 cpu, bool is_call);
void task_start(struct task *task, u32 parent_cpu);
