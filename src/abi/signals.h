/* SPDX-License-Identifier: GPL-2.0-or-later */
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
	EVENT_THREAD_EXIT, /* one of its threads is: struct thread_event */
	EVENT_GPU,	   /* value: the runtime by which it first used a GPU: struct gpu_event */
	EVENT_STEP,	   /* value: how many steps ended, with that at time_ns; as EVENT_PHASE */
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
	HIST_LAUNCH,	    /* a launch, from its entry to its return */
	HIST_STEP,	    /* a step, from its end to the next one's */
	HIST_RANK_WAIT,	    /* for other ranks, at most: see collectives.bpf.h */
	HIST_COLLECTIVE,    /* + operation: from the call to the sync that covers it */
	HIST_KIND_NR = HIST_COLLECTIVE + COLLECTIVE_NR,
};

/*
 * A pid alone may be anybody's by the time it is read. The keys of all maps that
 * hold something of a process begin like this.
 */
struct process_key {
	u64 start_ns; /* as in struct process_state */
	u32 tgid;
	u32 pad;
};

struct hist_key {
	u64 start_ns;
	u32 tgid;
	u32 kind;
};
_Static_assert(sizeof(struct hist_key) == 16, "shared with BPF");

/*
 * Who stood in the way of a process: the name of who ran instead of its launcher or
 * loader, or of the disk that one of them waited for. The value is nanoseconds.
 */
struct culprit_key {
	u64 start_ns;
	u32 tgid;
	u32 cause; /* enum idle_cause */
	char name[COMM_LEN];
};
_Static_assert(sizeof(struct culprit_key) == 32, "shared with BPF");

struct gpu_event {
	struct event event;
	u64 start_ns;
};

/*
 * A process counts the devices it may see; the machine counts all of them. What
 * user space found out of that, for a process; 0 is not known, else one more than
 * the machine's number.
 */
struct gpu_numbers {
	u8 of[GPU_MAX];
};

/* What the kernel remembers of a process's GPU memory, all in one map. */
enum memory_space {
	SPACE_POINTER, /* address: what was allocated there */
	SPACE_HANDLE,  /* physical memory by its handle */
	SPACE_MAPPING, /* address: which handle is mapped there */
	SPACE_CONTEXT, /* a context by its handle */
	SPACE_PRIMARY, /* the primary context of a device, by the device's number */
};

struct memory_key {
	u64 start_ns;
	u32 tgid;
	u8 level;
	u8 space;
	u8 pad[2];
	u64 address;
};
_Static_assert(sizeof(struct memory_key) == 24, "shared with BPF");

struct memory {
	u64 bytes;
	/*
	 * Of a context: its number, never used again though its handle may be. Of a
	 * pointer: the number of the context it was made in, 0 where that is not known.
	 * Of a mapping: the handle. Of a primary context's device: the context.
	 */
	u64 owner;
	u64 nr_refs; /* calls or mappings that keep it */
	u8 device;   /* as the process counts */
	u8 detail;   /* which memory: enum call_detail */
	u8 pad[6];
};
_Static_assert(sizeof(struct memory) == 32, "shared with BPF");
