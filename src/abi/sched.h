/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Types that the scheduler in BPF and user space share. */
#include "abi/types.h"

#define MAX_CPUS  1024
#define MAX_LLCS  256
#define MAX_NODES 256

/* The LLC of a CPU that was offline when the topology was read. */
#define LLC_UNKNOWN 0xffff

/* The LLC and the NUMA node of each CPU. LLCs are numbered from 0. */
struct topology {
	u32 nr_cpus; /* possible CPUs */
	u32 nr_llcs;
	u32 nr_nodes;		 /* nodes that have CPUs, at least 1 */
	u32 nr_placed;		 /* CPUs in `cpus`: those whose LLC is known */
	u16 cpu_llc[MAX_CPUS];	 /* LLC_UNKNOWN if the CPU is offline */
	u16 cpus[MAX_CPUS];	 /* ordered by LLC */
	u16 cpu_place[MAX_CPUS]; /* of each CPU in `cpus` */
	u16 llc_place[MAX_LLCS]; /* of the first CPU of each LLC in `cpus` */
	u16 llc_size[MAX_LLCS];	 /* CPUs of each LLC */
	u16 node_cpus[MAX_CPUS]; /* ordered by node */
	u16 node_place[MAX_NODES], node_size[MAX_NODES];
	u8 cpu_node[MAX_CPUS]; /* number in the kernel plus one; 0: unknown */
};
_Static_assert(sizeof(struct topology) == 16 + 9 * MAX_CPUS + 4 * (MAX_LLCS + MAX_NODES),
	       "shared with BPF");

/* Settings that an operator may change while the scheduler runs. */
struct sched_policy {
	u32 reserved_percent; /* of each CPU, reserved for ordinary tasks */
	u32 rules_off;	      /* one bit for each disabled enum sched_rule */
	/* While a cgroup uses more than this part of its share, its tasks are not promoted. */
	u32 promotion_percent;
	u32 daemon_tgid; /* zerneld itself, whose wakeups do not wait for other tasks */
};
_Static_assert(sizeof(struct sched_policy) == 16, "shared with BPF");

/* The class of a task. It can change at each enqueue. */
enum sched_class {
	CLASS_ORDINARY,
	CLASS_FEEDER,	     /* the GPU waits for it or soon will */
	CLASS_WANTED_LOADER, /* its consumer waits for data */
	CLASS_LATE_LOADER,   /* its consumer had to wait recently */
	CLASS_LOADER,	     /* works ahead */
	CLASS_SPINNER,	     /* polls a GPU that has work, or polls for missing ranks */
	CLASS_SYSTEM,	     /* a kernel thread or service that was just woken up */
	CLASS_IDLE,	     /* SCHED_IDLE or cpu.idle: runs when no other task wants the CPU */
	CLASS_NR,
	CLASS_SLOTS = 8, /* size of tables: a power of two, so that the verifier accepts a mask */
};

/* The queues of an LLC. */
enum sched_queue {
	QUEUE_ORDINARY,
	QUEUE_OVERDUE, /* tasks that waited too long in another queue */
	QUEUE_FIRST,
	QUEUE_LOADERS,
	QUEUE_SPINNERS,
	QUEUE_SYSTEM,
	QUEUE_IDLE,
	QUEUE_NR,
	QUEUE_SLOTS = 8,
};

/*
 * What may change the class of tasks that wait. On a cache line of its own, because the scheduler
 * reads it at each dispatch.
 */
struct new_roles {
	u64 nr_found;  /* how often a task got a role that lets it run first */
	u64 opened_ns; /* when a process last opened its first GPU */
} __attribute__((aligned(64)));

/* Rules that can be disabled, to measure the effect of each one. */
enum sched_rule {
	RULE_FEEDER,
	RULE_LOADER,
	RULE_LATE_LOADER,
	RULE_SPINNER,
	RULE_HELPER,
	RULE_PREEMPT,
	RULE_TIER,
	RULE_PLACE,
	RULE_CRITICAL,
	RULE_POLLER,
	RULE_OPENING,
	RULE_NR,
};

/* Decisions of the scheduler, counted for each class. */
enum sched_decision {
	DECISION_IDLE_CPU, /* dispatched directly to an idle CPU */
	DECISION_QUEUED,
	DECISION_PREEMPTED,	 /* preempted another task */
	DECISION_PROMOTED,	 /* dispatched from a queue before its turn */
	DECISION_OVERDUE,	 /* waited too long */
	DECISION_SLICE_EXTENDED, /* kept its CPU: no waiting task had precedence */
	DECISION_CAPPED,	 /* not promoted: its cgroup used up what promotion may give it */
	DECISION_THROTTLED,	 /* waits for the next period of a cpu.max */
	DECISION_NR,
};

/* The maximum debt of promoted tasks to the other tasks; more is forgiven. */
#define DEBT_MAX_NS   (100 * NSEC_PER_MSEC)
/* Above this debt the other tasks go first. */
#define DEBT_LIMIT_NS (20 * NSEC_PER_MSEC)

struct sched_counters {
	u64 nr[CLASS_SLOTS][DECISION_NR];
	u64 ran_ns[CLASS_SLOTS];
};
_Static_assert(sizeof(struct sched_counters) == 8 * CLASS_SLOTS * (DECISION_NR + 1),
	       "shared with BPF");

/* Why the scheduler was ejected or detached. Written once, by ops.exit. */
struct sched_exit {
	u32 kind; /* enum scx_exit_kind of the kernel; 0 while the scheduler is attached */
	u32 pad;
	s64 code;
	char reason[128];
	char msg[1024];
	char dump[32768];
};

_Static_assert(sizeof(struct sched_exit) == 16 + 128 + 1024 + 32768, "shared with BPF");
