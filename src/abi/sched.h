/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/* What the scheduler and its loader share. */
#include "abi/types.h"

#define MAX_CPUS 1024
#define MAX_LLCS 256

/* A CPU that was offline when the topology was read. */
#define LLC_UNKNOWN 0xffff

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
