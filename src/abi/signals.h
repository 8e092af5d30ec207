/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* What the kernel side knows of ML processes and their threads. */
#include "abi/runtime.h"

#define MAX_PROCESSES  1024
#define MAX_CALL_DEPTH 4
#define GPU_MAX	       16

/* What a thread is there for. */
enum role {
	ROLE_OTHER = 0,
	ROLE_LAUNCHER,		/* feeds the device */
	ROLE_SYNC_WAITER,	/* only waits for it */
	ROLE_LOADER,		/* wakes a launcher with data */
	ROLE_COLLECTIVE_HELPER, /* made by a collective runtime */
	ROLE_NR,
};

/* Why a record came through the ring buffer. */
enum event_kind {
	EVENT_PHASE, /* value: the phase entered at time_ns; only while a timeline is wanted */
	EVENT_ROLE,  /* value: the role the thread has from time_ns on; likewise */
	EVENT_EXIT,  /* the process is gone: struct exit_event */
	EVENT_NR,
};

struct event {
	u64 time_ns; /* CLOCK_MONOTONIC */
	u32 kind;
	u32 tgid;
	u32 tid;
	u32 value;
};
_Static_assert(sizeof(struct event) == 24, "shared with BPF");

/* Distributions of durations, each kept for every process. */
enum hist_kind {
	HIST_SYNC_WAIT,	    /* in a call that waits for the device */
	HIST_LOADER_WAIT,   /* the launcher, for data */
	HIST_RUNQUEUE_WAIT, /* the launcher, for a CPU */
	HIST_COLLECTIVE,    /* + operation: from the call to the sync that covers it */
	HIST_KIND_NR = HIST_COLLECTIVE + COLLECTIVE_NR,
};

/* A pid alone may be anybody's by the time it is read. */
struct process_key {
	u64 start_ns; /* boot time */
	u32 tgid;
};

struct hist_key {
	u64 start_ns;
	u32 tgid;
	u32 kind;
};
_Static_assert(sizeof(struct hist_key) == 16, "shared with BPF");
