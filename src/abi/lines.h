/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Idle time by stack: what the BPF programs add up while a client wants it. */
#include "abi/idle.h"
#include "abi/python.h"

/*
 * A running thread is sampled about so often, in samples per second. The period changes at random
 * between half and one and a half of the mean: a job whose steps have the length of some periods
 * would show the same lines each time. A longer time between ticks is no period.
 */
#define LINES_RATE	    99
#define LINES_PERIOD_NS	    (NSEC_PER_SEC / LINES_RATE)
#define LINES_PERIOD_MAX_NS (4 * LINES_PERIOD_NS)
/*
 * Processes that can be sampled at the same time, in all and of one user, and the entries that each
 * of them can have in the tables. The share of a process holds what its loaders need too. No
 * process can take the room of another one.
 */
#define LINES_PROCESSES	    32
#define LINES_OF_USER	    8
#define LINES_THREADS	    512
#define LINES_STACKS	    512
#define LINES_SUMS	    2048
#define LINES_CODES	    512
/* Sums of a process that can name kernels. Further ones leave them out, so that no time is lost. */
#define LINES_KERNEL_SUMS   (LINES_SUMS / 2)
/* Sums that can wait for the next launch: core/gap.h. */
#define LINES_WAITING	    8

struct lines_counts {
	u64 nr_samples;
	u64 nr_dropped;	   /* the share of the process was used up, or reading took too long */
	u64 nr_unreadable; /* the stack could not be read */
};

/* Entries that a process has. */
struct lines_used {
	u64 nr_threads;
	u64 nr_stacks;
	u64 nr_sums;
	u64 nr_codes;
};

struct lines_stack_key {
	u64 hash;  /* of the frames */
	u32 tgid;  /* of the process whose memory was read: a loader can be a process */
	u32 owner; /* process ID of the process that is sampled, which has the share */
};

/* Instead of the handle of a kernel. */
enum {
	GAP_UNKNOWN, /* it is not known which kernel was launched, or whether one was */
	GAP_GRAPH,   /* a graph of kernels */
	GAP_THROUGH, /* the runtime, which knows no handle, and may call its driver */
};

struct lines_sum_key {
	u64 start_ns; /* of the process, as in struct process_state */
	u32 tgid;
	u32 tid;
	struct lines_stack_key stack; /* hash 0: the stack could not be read */
	u32 cause;		      /* enum idle_cause */
	u32 role;		      /* enum role */
	u32 call; /* the innermost runtime call that the thread is in, plus 1; 0: none */
	u32 pad;
	u64 after;  /* handle of the kernel that was launched last, or GAP_UNKNOWN, GAP_GRAPH */
	u64 before; /* of the kernel that was launched next */
};

struct lines_sum {
	u64 done_ns; /* the GPU had no work */
	u64 open_ns; /* it may have had none */
	u64 nr_samples;
};

struct lines_waiting {
	struct lines_sum_key key; /* without `before` */
	struct lines_sum sum;
};

/* The time of a process since its last launch: core/gap.h. */
struct lines_gap {
	u64 is_taken;	/* a program changes the other members */
	u64 is_torn;	/* a launch was not noted */
	u64 is_through; /* the runtime was called, and no launch of its driver has followed yet */
	u64 nr_launches;
	u64 after;
	u64 nr_waiting;
	struct lines_waiting waiting[LINES_WAITING];
};

/* With the process ID as the key: a process whose lines a client wants. Set by user space. */
struct lines_process {
	u64 runtime; /* address of the runtime of its interpreter; 0: it has none */
	struct python_offsets offsets;
	struct lines_counts counts; /* these members: written by the programs */
	struct lines_used used;
	struct lines_gap gap;
};

struct lines_stack_value {
	u32 is_named; /* the code of all frames was copied */
	u32 pad;
	struct python_stack stack;
};

struct lines_code_key {
	u64 code;
	u32 lines;
	u32 tgid;
	u32 part;
	u32 owner;
};

struct lines_thread_key {
	u32 owner;
	u32 tid;
};
