/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What all processes on the virtual devices share: one mapped file. It holds who
 * uses how much memory, when each device was busy, and where ranks meet.
 *
 * A process may be killed at any instant. So nothing is a running total that two
 * stores must keep right: memory in use is the sum over the processes that live,
 * and a dead one's slot is simply emptied by whoever looks next. The lock is a
 * robust mutex, and every update under it is whole after any single store.
 */
#include <pthread.h>

#include "abi/types.h"

#define SHM_MAGIC   0x7667707573686d31ULL
#define SHM_DEVICES 16
#define SHM_PROCS   256
#define SHM_SPANS   16384
#define SHM_COMMS   64
#define SHM_RANKS   32
#define SHM_P2P	    16 /* sends from one rank to another that may be in flight */
#define SHM_COLL    4  /* a rank is at most one collective ahead of the slowest */

enum shm_span_kind {
	SHM_SPAN_COMPUTE = 1 << 0,
	SHM_SPAN_COPY = 1 << 1,
	SHM_SPAN_COLLECTIVE = 1 << 2, /* waiting for ranks included */
};
#define SHM_SPAN_KINDS	 3
/* What counts as using the device. */
#define SHM_SPAN_KERNELS (SHM_SPAN_COMPUTE | SHM_SPAN_COLLECTIVE)

/* One process's view of "the device was busy"; end 0 is not written (yet). */
struct shm_span {
	u64 start_ns;
	u64 end_ns;
	u32 proc;
	u32 kind;
};

struct shm_device {
	u64 head; /* spans ever added */
	u64 folded_until_ns;
	u64 folded_busy_ns; /* time of kernels before folded_until_ns */
	u32 numa_node;
	u32 pad;
	struct shm_span spans[SHM_SPANS];
};

struct shm_proc {
	u32 pid; /* 0: free */
	u32 pad;
	u64 starttime;
	u64 memory[SHM_DEVICES];
	u64 open_since_ns[SHM_DEVICES]; /* a collective began and waits for ranks; 0: none */
	u32 contexts[SHM_DEVICES];
};

/* A rank's arrival at the collective or transfer with this number (from 1). */
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
	u32 numa_node[SHM_DEVICES];
};

struct shm {
	u64 magic;
	u64 size;
	u64 created_ns;
	struct shm_config config;
	pthread_mutex_t lock;
	struct shm_proc procs[SHM_PROCS];
	struct shm_device devices[SHM_DEVICES];
	struct shm_comm comms[SHM_COMMS];
};

/* Maps the file of VGPU_SHM, making the devices if no living process has any. */
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

/* Start time of a living process in clock ticks since boot, 0 when it is gone. */
u64 shm_starttime(u32 pid);
/* Empties the slots of dead processes. With the lock held. */
void shm_reap(struct shm *shm);

int shm_join(struct shm *shm, u32 *ret_proc);
void shm_leave(struct shm *shm, u32 proc);

int shm_charge(struct shm *shm, u32 proc, u32 device, u64 bytes);
void shm_uncharge(struct shm *shm, u32 proc, u32 device, u64 bytes);
/* With the lock held. */
u64 shm_memory_used(const struct shm *shm, u32 device);

/*
 * Adds a busy span of this process. `cursor` (from 0) remembers the last one, so
 * that work queued back to back stays one span.
 */
void shm_span_add(struct shm *shm, u32 device, u32 proc, u32 kind, u64 start_ns, u64 end_ns,
		  u64 *cursor);

#define SHM_ANY_PROC (~0U)
/* Nanoseconds in [from, to) with any span of these kinds: the union, not the sum. */
u64 shm_busy_ns(const struct shm *shm, u32 device, u32 proc, u32 kinds, u64 from_ns, u64 to_ns);
/* Time of kernels on the device since it was made. With the lock held. */
u64 shm_busy_total_ns(struct shm *shm, u32 device, u64 now_ns);
