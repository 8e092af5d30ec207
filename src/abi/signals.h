/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Types for ML processes and their threads that the BPF programs and user space share. */
#include "abi/runtime.h"

#define MAX_PROCESSES  1024
#define MAX_MEMORY     (1 << 18) /* allocations, mappings and contexts of all processes */
#define MAX_CALL_DEPTH 4
/* Processes that can end between two reads of the events, which are 100 ms apart. */
#define EXITS_MAX      1536
#define GPU_MAX	       16

/* The role of a thread. */
enum role {
	ROLE_OTHER = 0,
	ROLE_LAUNCHER,		/* launches work on the GPU */
	ROLE_SYNC_WAITER,	/* only waits for the GPU */
	ROLE_LOADER,		/* wakes a launcher when data is ready */
	ROLE_COLLECTIVE_HELPER, /* created by a collective runtime */
	ROLE_CRITICAL,		/* a launcher cannot go on before it has finished */
	ROLE_NR,
};

/* What a thread did when its record was written, as the kernel says. */
enum thread_doing {
	THREAD_UNKNOWN, /* in a snapshot of an older zerneld */
	THREAD_RUNNING, /* it ran or waited for a CPU */
	THREAD_SLEEPING,
	THREAD_UNINTERRUPTIBLE, /* most often a wait for a disk */
	THREAD_STOPPED,		/* by a signal or a debugger */
	THREAD_DOING_NR,
};

/* Kinds of records in the ring buffer. */
enum event_kind {
	EVENT_PHASE,	   /* value: the phase from time_ns on; only while a timeline is wanted */
	EVENT_ROLE,	   /* value: the role from time_ns on; only while a timeline is wanted */
	EVENT_EXIT,	   /* the process has exited: struct exit_event */
	EVENT_THREAD_EXIT, /* a thread of it has exited: struct thread_event */
	EVENT_GPU,	   /* the process uses a GPU for the first time */
	EVENT_LAUNCHER,	   /* the process has its first launcher */
	EVENT_STEP, /* value: number of steps that ended up to time_ns; sent like EVENT_PHASE */
	EVENT_OOM,  /* PyTorch reported that it is out of memory: core/oom.h */
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

/* How the steps of a process were found. A better basis replaces a worse one. */
/* What proves that a process uses a GPU, beside its calls, which any program can make. */
enum gpu_evidence {
	GPU_EVIDENCE_UNKNOWN, /* in a snapshot of an older zerneld */
	GPU_EVIDENCE_NONE,
	GPU_EVIDENCE_DEVICE, /* it has opened the device file of a GPU */
	GPU_EVIDENCE_NR,
};

enum step_basis {
	STEP_BASIS_NONE,
	STEP_BASIS_SYNC,      /* the sequence of syncs that repeats */
	STEP_BASIS_ITERATION, /* a copy of results to the host, and the sync or query that covers it
			       */
	STEP_BASIS_OPTIMIZER, /* the framework names its optimizer steps */
	STEP_BASIS_NR,
};

/* Counters of a GPU that tell for how long it worked. */
enum gpu_counter {
	GPU_COUNTER_NONE,
	GPU_COUNTER_UTILIZATION, /* NVML utilization: whole percent of a sample period */
	GPU_COUNTER_GPM,	 /* NVML performance monitoring */
	GPU_COUNTER_ENGINE,	 /* busy time of the engines, by the kernel's driver */
	GPU_COUNTER_NR,
};

/* Distributions of durations, kept for each process. */
enum hist_kind {
	HIST_SYNC_WAIT,	    /* time in a call that waits for the GPU */
	HIST_LOADER_WAIT,   /* wait of the launcher for data */
	HIST_RUNQUEUE_WAIT, /* wait of the launcher for a CPU */
	HIST_LAUNCH,	    /* a launch call, from entry to return */
	HIST_STEP,	    /* a step, from the end of the step before to its own end */
	HIST_IDLE,	    /* the GPU had no work, from the end of its work to the next launch */
	HIST_RANK_WAIT,	    /* wait for other ranks, an upper bound: see collectives.bpf.h */
	HIST_COLLECTIVE,    /* + operation: from the call to the sync that covers it */
	HIST_KIND_NR = HIST_COLLECTIVE + COLLECTIVE_NR,
};

/*
 * A pid alone can be reused before it is read, so the keys of all maps with data
 * of a process begin with these members.
 */
struct process_key {
	u64 start_ns; /* as in struct process_state */
	u32 tgid;
	u32 pad;
};
_Static_assert(sizeof(struct process_key) == 16, "shared with BPF");

/* A launcher: the row of it that other tasks see (consumers.bpf.h). */
struct consumer_key {
	u64 start_ns; /* of the thread */
	u32 tid;      /* 0: none */
	u32 tgid;
};
_Static_assert(sizeof(struct consumer_key) == 16, "shared with BPF");

struct hist_key {
	u64 start_ns;
	u32 tgid;
	u32 kind;
};
_Static_assert(sizeof(struct hist_key) == 16, "shared with BPF");

/*
 * A cause of delay by name: the task that ran instead of the launcher or a loader
 * of the process, or the disk that they waited for. The map value is in
 * nanoseconds.
 */
struct culprit_key {
	u64 start_ns;
	u32 tgid;
	u32 cause; /* enum idle_cause */
	char name[COMM_LEN];
};
_Static_assert(sizeof(struct culprit_key) == 32, "shared with BPF");

/* What a runtime tells a process about a device, in the order of enum call_detail. */
enum gpu_claim {
	GPU_CLAIM_PROPERTIES, /* UUID of the device, or of its part (MIG) */
	GPU_CLAIM_UUID,
	GPU_CLAIM_UUID_PART,
	GPU_CLAIM_PCI, /* address, as text */
	GPU_CLAIM_NR,
};
_Static_assert(DETAIL_PCI - DETAIL_PROPERTIES == GPU_CLAIM_PCI, "the order is the same");
_Static_assert((GPU_CLAIM_NR & (GPU_CLAIM_NR - 1)) == 0, "BPF masks an index with it");

/* A UUID, or the address of a PCI device with a domain of up to eight digits. */
#define GPU_CLAIM_BYTES 16

#define GPU_CLAIM_BIT(device, claim) (1ULL << ((device) * GPU_CLAIM_NR + (claim)))
_Static_assert(GPU_MAX *GPU_CLAIM_NR <= 64, "all bits fit");

/*
 * What the runtimes of a process told it about its devices. The process can change its own
 * runtime, so that nothing of this is certain: core/gpu_identity.h.
 */
struct gpu_claims {
	u64 used;  /* a bit for each device that it selected or has allocated memory on */
	u64 mixed; /* a bit for each device with two different values for one claim */
	u64 told;  /* GPU_CLAIM_BIT() for each value that is known */
	u64 value[GPU_MAX][GPU_CLAIM_NR][GPU_CLAIM_BYTES / sizeof(u64)];
};
_Static_assert(sizeof(struct gpu_claims) == 24 + GPU_MAX * GPU_CLAIM_NR * GPU_CLAIM_BYTES,
	       "shared with BPF");

/* What tells which GPU of the machine a device of a process is. */
enum gpu_basis {
	GPU_BASIS_NONE,	    /* the GPU is unknown */
	GPU_BASIS_CONFLICT, /* unknown: the runtime and the driver name different GPUs */
	GPU_BASIS_RUNTIME,  /* what the runtime of the process returned to it */
	GPU_BASIS_DRIVER,   /* the driver lists the process on this GPU */
	GPU_BASIS_FILE,	    /* the process has opened the device file of no other GPU */
	GPU_BASIS_NR,
};

/*
 * A process numbers only the GPUs that it can see; the machine numbers all of
 * them. User space finds the mapping for a process. In all arrays, 0 means unknown or none,
 * and other values are a number plus one.
 */
struct gpu_numbers {
	u8 of[GPU_MAX];		  /* the GPU of the machine */
	u8 gpu_instance[GPU_MAX]; /* of a part of the GPU (MIG) */
	u8 compute_instance[GPU_MAX];
	u8 basis[GPU_MAX]; /* enum gpu_basis; not plus one */
};

/* Kinds of entries in the map of GPU memory. */
enum memory_space {
	SPACE_POINTER, /* by address: an allocation */
	SPACE_HANDLE,  /* by handle: physical memory */
	SPACE_MAPPING, /* by address: the handle that is mapped there */
	SPACE_CONTEXT, /* by handle: a context */
	SPACE_PRIMARY, /* by device number: the primary context of a device */
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
	 * Context: its number, which is never reused, although its handle may be.
	 * Pointer: the number of the context that it was allocated in, 0 if
	 * unknown. Mapping: the handle. Primary context of a device: the handle
	 * of the context.
	 */
	u64 owner;
	u64 nr_refs; /* calls or mappings that hold a reference */
	u8 device;   /* numbered as in the process */
	u8 detail;   /* kind of memory: enum call_detail */
	u8 pad[6];
};
_Static_assert(sizeof(struct memory) == 32, "shared with BPF");
