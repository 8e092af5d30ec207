/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What PyTorch's allocator has given out of the GPU memory that it has reserved, over time: what
 * the BPF programs note of a process while a client wants it.
 */
#include "abi/types.h"

/* Processes that can be watched at the same time, in all and of one user, and for how long. */
#define USAGE_PROCESSES	  32
#define USAGE_OF_USER	  8
#define USAGE_SECONDS_MAX 300
/* The time of a watch has so many parts of the same length. */
#define USAGE_PARTS	  20
/* No GPU has so much memory. A process can report anything. */
#define USAGE_BYTES_MAX	  (1ULL << 56)

/* With the process ID as the key: a process that a client wants. Set by user space. */
struct usage_process {
	u64 begin_ns; /* in CLOCK_MONOTONIC */
	u64 part_ns;  /* not 0 */
};
_Static_assert(sizeof(struct usage_process) == 16, "shared with BPF");

struct usage_key {
	u32 tgid;
	u32 device; /* as the process numbers it; below GPU_MAX */
};
_Static_assert(sizeof(struct usage_key) == 8, "shared with BPF");

/* A part of the time. */
struct usage_part {
	u64 nr;		     /* reports; 0: the other members are not valid */
	u64 allocated_bytes; /* by the last report */
	u64 reserved_bytes;
	u64 allocated_most; /* the largest report */
	u64 reserved_then;  /* what was reserved at that moment */
};

/* The memory of one GPU. */
struct usage {
	struct usage_part parts[USAGE_PARTS];
};
_Static_assert(sizeof(struct usage) == USAGE_PARTS * 40, "shared with BPF");
