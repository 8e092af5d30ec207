/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * State that all processes on the virtual devices share, in one mapped file: the
 * memory use of each process, the busy times of each device, and the arrivals of ranks.
 *
 * A process may be killed at any instant. So no total needs two stores to stay correct:
 * memory in use is the sum over the live processes, and the next reader empties the
 * slot of a dead process. The lock is a robust mutex, and the data under it is
 * consistent after each single store.
 */
#include <pthread.h>

#include "abi/types.h"

#define SHM_MAGIC   0x7667707573686d33ULL
#define SHM_DEVICES 16
#define SHM_SLICES  7 /* parts of a device (MIG) */
#define SHM_PROCS   256
#define SHM_SPANS   65536
#define SHM_COMMS   64
#define SHM_RANKS   32
#define SHM_P2P	    16 /* maximum number of sends in flight from one rank to another */
#define SHM_COLL    4  /* a rank is at most one collective ahead of the slowest rank */

enum shm_span_kind {
	SHM_SPAN_COMPUTE = 1 << 0,
	SHM_SPAN_COPY = 1 << 1,
	SHM_SPAN_COLLECTIVE = 1 << 2, /* includes the wait for ranks */
};
#define SHM_SPAN_KINDS		  3
/* The kernel of a collective, which mostly waits for other ranks, uses few multiprocessors. */
#define SHM_COLLECTIVE_SM_PERCENT 10

/* The driver samples its utilization in periods of this length, counted from the boot. */
#define SHM_PERIOD_NS (NSEC_PER_SEC / 6)
#define SHM_PERIODS   120 /* completed periods that a monitor can read */

/* A time when the device was busy for one process; end 0: not written, or not yet. */
struct shm_span {
	u64 start_ns;
	u64 end_ns;
	u32 proc;
	u16 kind;
	u16 sm_percent; /* share of the multiprocessors in use */
};

/* Nanoseconds in which at least one kernel, or one kernel or copy, was executing. */
struct shm_period {
	u64 number;
	u64 kernel_ns;
	u64 any_ns;
};

/* The device's utilization from its creation until a moment. */
struct shm_fold {
	u64 until_ns;
	u64 kernel_ns;
	u64 sm_ns; /* kernel time, weighted by the share of the multiprocessors in use */
	/* A period that is not here was idle. Room for the current period, too. */
	struct shm_period periods[SHM_PERIODS + 1];
};

struct shm_device {
	u64 head; /* total number of spans added */
	struct shm_fold fold;
	u32 numa_node;
	u32 pad;
	struct shm_span spans[SHM_SPANS];
};

struct shm_proc {
	u32 pid; /* 0: free */
	u32 pad;
	u64 starttime;
	u64 memory[SHM_DEVICES];
	u64 open_since_ns[SHM_DEVICES]; /* start of a collective that waits for ranks; 0: none */
	u32 contexts[SHM_DEVICES];
	u32 slice[SHM_DEVICES]; /* the part that its contexts use, from 1; 0: all of the device */
};

/* Arrival of a rank at the collective or transfer with this number (from 1). */
struct shm_arrival {
	u64 number;
	u64 at_ns;
};

struct shm_split {
	u64 number;
	s32 color;
	s32 key;
};

struct shm_rank {
	u32 pid;
	u32 joined; /* 0 not yet, 1 joined, 2 left */
	u64 starttime;
	struct shm_arrival coll[SHM_COLL];
	struct shm_split split[SHM_COLL];
	struct shm_arrival send[SHM_RANKS][SHM_P2P]; /* to that peer */
	struct shm_arrival recv[SHM_RANKS][SHM_P2P]; /* from that peer */
};

struct shm_comm {
	u64 id; /* 0: free */
	u32 nr_ranks;
	u32 pad;
	struct shm_rank ranks[SHM_RANKS];
};

struct shm_config {
	u64 memory_bytes;
	u64 bandwidth;
	u64 nccl_bandwidth;
	u32 nr_devices;
	u32 gpm; /* 0: a GPU without performance monitoring */
	u32 numa_node[SHM_DEVICES];
	u32 minor[SHM_DEVICES];	    /* numbers of the device files */
	u32 nr_slices[SHM_DEVICES]; /* 0: the device is not divided */
};

struct shm {
	u64 magic;
	u64 size;
	u64 created_ns;
	u64 realtime_minus_monotonic_ns;
	struct shm_config config;
	pthread_mutex_t lock;
	struct shm_proc procs[SHM_PROCS];
	struct shm_device devices[SHM_DEVICES];
	struct shm_comm comms[SHM_COMMS];
};

/* Maps the file of VGPU_SHM. Creates the devices if no live process uses them. */
int shm_attach(struct shm **ret);

void shm_lock(struct shm *shm);
void shm_unlock(struct shm *shm);
#define SHM_LOCKED(shm)                                                                            \
	__attribute__((cleanup(shm_unlockp), unused)) struct shm *shm##_locked =                   \
		(shm_lock(shm), (shm))
static inline void shm_unlockp(struct shm **shm)
{
	shm_unlock(*shm);
}

/* Start time of a live process in clock ticks since boot, 0 if it ended. */
u64 shm_starttime(u32 pid);
/* Empties the slots of dead processes. The caller holds the lock. */
void shm_reap(struct shm *shm);

int shm_join(struct shm *shm, u32 *ret_proc);
void shm_leave(struct shm *shm, u32 proc);

int shm_charge(struct shm *shm, u32 proc, u32 device, u64 bytes);
void shm_uncharge(struct shm *shm, u32 proc, u32 device, u64 bytes);
/* The caller holds the lock. */
u64 shm_memory_used(const struct shm *shm, u32 device);

/*
 * Adds a busy span of this process. `cursor` (initially 0) refers to the last span, so
 * that consecutive work stays one span.
 */
void shm_span_add(struct shm *shm, u32 device, u32 proc, u32 kind, u32 sm_percent, u64 start_ns,
		  u64 end_ns, u64 *cursor);
/* Number of spans in the ring of the device. */
u32 shm_span_count(const struct shm_device *device);

#define SHM_ANY_PROC (~0U)
/* Adds the spans of a process between fold->until_ns and `until_ns`. */
void shm_fold_extend(const struct shm *shm, u32 device, u32 proc, u64 until_ns,
		     struct shm_fold *fold);
/* The utilization of the device until now. The caller holds the lock. */
void shm_fold_read(struct shm *shm, u32 device, u64 now_ns, struct shm_fold *ret);
/* The period with this number, all zero if the device was idle. */
struct shm_period shm_period_of(const struct shm_fold *fold, u64 number);
