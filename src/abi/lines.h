/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Idle time by stack: what the BPF programs add up while a client wants it. */
#include "abi/idle.h"
#include "abi/python.h"

/*
 * A running thread is sampled so often, in samples per second. Of the ticks in a period, a random
 * one counts: a job whose steps have the length of some periods would show the same lines each
 * time.
 */
#define LINES_RATE	99
#define LINES_TICKS	10
#define LINES_PERIOD_NS (NSEC_PER_SEC / LINES_RATE)
/*
 * Processes that can be sampled at the same time, in all and of one user, and the entries that each
 * of them can have in the tables. The share of a process holds what its loaders need too. No
 * process can take the room of another one.
 */
#define LINES_PROCESSES 32
#define LINES_OF_USER	8
#define LINES_THREADS	512
#define LINES_STACKS	512
#define LINES_SUMS	1024
#define LINES_CODES	512

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

/* With the process ID as the key: a process whose lines a client wants. Set by user space. */
struct lines_process {
	u64 runtime; /* address of the runtime of its interpreter; 0: it has none */
	struct python_offsets offsets;
	struct lines_counts counts; /* these members: written by the programs */
	struct lines_used used;
};

struct lines_stack_key {
	u64 hash;  /* of the frames */
	u32 tgid;  /* of the process whose memory was read: a loader can be a process */
	u32 owner; /* process ID of the process that is sampled, which has the share */
};

struct lines_stack_value {
	u32 is_named; /* the code of all frames was copied */
	u32 pad;
	struct python_stack stack;
};

struct lines_sum_key {
	u64 start_ns; /* of the process, as in struct process_state */
	u32 tgid;
	u32 tid;
	struct lines_stack_key stack; /* hash 0: the stack could not be read */
	u32 cause;		      /* enum idle_cause */
	u32 role;		      /* enum role */
};

struct lines_sum {
	u64 done_ns; /* the GPU had no work */
	u64 open_ns; /* it may have had none */
	u64 nr_samples;
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
