/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the operations of the scheduler cost. The scheduler is compiled with the instrumentation
 * of a race detector, whose functions are in count.c: each access to memory is seen.
 */
#include "abi/types.h"

enum op {
	OP_SELECT_CPU,
	OP_ENQUEUE,
	OP_DISPATCH,
	OP_RUNNING,
	OP_STOPPING,
	OP_TICK,
	OP_TIMER,
	OP_OTHER, /* init and cgroups: not reported */
	OP_NR,
};

enum count {
	COUNT_WORK,	     /* accesses to memory, calls of the kernel, steps of loops */
	COUNT_CPU_SCANS,     /* loops over CPUs */
	COUNT_CPU_STEPS,     /* their steps */
	COUNT_QUEUE_STEPS,   /* tasks that walks over queues visit */
	COUNT_LOCKS,	     /* locks of queues and of run queues of other CPUs */
	COUNT_LINES_WRITTEN, /* lines of memory that another CPU wrote last */
	COUNT_LINES_READ,    /* the same, each line once per operation */
	COUNT_KICKS,	     /* interrupts sent to CPUs */
	COUNT_NR,
};

struct op_counts {
	u64 nr;
	u64 sum[COUNT_NR], max[COUNT_NR];
};

struct holds {
	u64 longest_rq, longest_dsq; /* in the unit of COUNT_WORK */
	enum op rq_op, dsq_op;
};

extern const char *const op_names[OP_NR];

void count_begin(enum op op, u32 cpu);
void count_end(void);
void count_add(enum count count, u64 nr);
/* A lock of a queue that is held for `steps`. */
void count_lock(u64 steps);
void count_reset(void);
const struct op_counts *count_of(enum op op);
const struct holds *count_holds(void);
/* How often the busiest line was taken from another CPU by a write. */
u64 count_busiest_line(void);
