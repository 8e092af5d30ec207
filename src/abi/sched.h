/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the scheduler and its loader share. */
#include "abi/types.h"

#define MAX_CPUS 1024
#define MAX_LLCS 256

/* A CPU that was offline when the topology was read. */
#define LLC_UNKNOWN 0xffff

/* Which CPU is behind which last-level cache and on which node; caches are numbered from 0. */
struct topology {
	u32 nr_cpus; /* possible CPUs */
	u32 nr_llcs;
	u32 nr_nodes;	       /* that have CPUs, 1 at least */
	u16 cpu_llc[MAX_CPUS]; /* LLC_UNKNOWN for a CPU that is offline */
	u8 cpu_node[MAX_CPUS]; /* the kernel's number plus one; 0 when not known */
};
_Static_assert(sizeof(struct topology) == 12 + 3 * MAX_CPUS, "shared with BPF");

/* What an operator may change while the scheduler runs. */
struct sched_policy {
	u32 reserved_percent; /* of each CPU, for ordinary tasks */
	u32 rules_off;	      /* a bit for each enum sched_rule that it shall do without */
};
#define SCHED_POLICY_DEFAULT ((struct sched_policy){ .reserved_percent = 30 })

/* What a task is to the scheduler at the moment. */
enum sched_class {
	CLASS_ORDINARY,
	CLASS_FEEDER,	     /* the GPU waits for it, or soon will */
	CLASS_WANTED_LOADER, /* its consumer waits for data */
	CLASS_LATE_LOADER,   /* its consumer had to wait lately */
	CLASS_LOADER,	     /* works ahead */
	CLASS_SPINNER,	     /* polls a device that has work, or for ranks that are missing */
	CLASS_NR,
	CLASS_SLOTS = 8, /* of tables: a power of two, which the verifier understands */
};

/* The queues of a cache. */
enum sched_queue {
	QUEUE_ORDINARY,
	QUEUE_OVERDUE, /* whoever waited too long elsewhere */
	QUEUE_FIRST,
	QUEUE_LOADERS,
	QUEUE_SPINNERS,
	QUEUE_NR,
	QUEUE_NONE = 7,
	QUEUE_SLOTS = 8,
};

/* Rules that can be switched off, to see what each is worth. */
enum sched_rule {
	RULE_FEEDER,
	RULE_LOADER,
	RULE_LATE_LOADER,
	RULE_SPINNER,
	RULE_HELPER,
	RULE_PREEMPT,
	RULE_TIER,
	RULE_PLACE,
	RULE_NR,
};

/* Kinds of decisions, counted for each class. */
enum sched_decision {
	DECISION_IDLE_CPU, /* straight to an idle CPU */
	DECISION_QUEUED,
	DECISION_PREEMPTED,	 /* took a CPU from somebody */
	DECISION_PROMOTED,	 /* taken out of a queue before its turn */
	DECISION_OVERDUE,	 /* had waited too long */
	DECISION_SLICE_EXTENDED, /* kept its CPU: no waiting task had precedence */
	DECISION_NR,
};

/* What the promoted can owe the others; more is forgiven. */
#define DEBT_MAX_NS   (100 * NSEC_PER_MSEC)
/* From so much on the others go first. */
#define DEBT_LIMIT_NS (20 * NSEC_PER_MSEC)

struct sched_counters {
	u64 nr[CLASS_SLOTS][DECISION_NR];
	u64 ran_ns[CLASS_SLOTS];
};

/* How a scheduler came to its end; filled once, by ops.exit. */
struct sched_exit {
	u32 kind; /* the kernel's enum scx_exit_kind; 0 while the scheduler lives */
	u32 pad;
	s64 code;
	char reason[128];
	char msg[1024];
	char dump[32768];
};

_Static_assert(sizeof(struct sched_exit) == 16 + 128 + 1024 + 32768, "shared with BPF");
