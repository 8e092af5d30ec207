/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the kernel observes of tasks, and what it is told to expect of them. */
#include "abi/types.h"

/*
 * What makes two tasks one kind: the executable and the role, whatever the task
 * calls itself. Where the executable is unknown (0) the name alone decides.
 */
struct procdb_key {
	u64 exe_id; /* a hash the caller makes of the executable, 0 when unknown */
	char comm[COMM_LEN];
	u8 role;
	u8 pad[7];
};
_Static_assert(sizeof(struct procdb_key) == 32, "no hidden padding");

struct procdb_behaviour {
	u64 runtime_avg_ns;
	u64 runtime_dev_ns;
	u64 wakeup_freq;
	u64 switch_rate;
};

/* What the kernel observed, and in the same shape what it is told to expect. */
struct procdb_record {
	u8 tier;
	u8 corrects; /* one more than the tier this very task was observed in before, or 0 */
	u8 pad[6];
	struct procdb_behaviour behaviour;
};
_Static_assert(sizeof(struct procdb_record) == 40, "the value of both kernel maps");

/* What comes through the ring buffer of the learning programs. */
struct procdb_observation {
	struct procdb_key key;
	struct procdb_record record;
	u32 owner; /* uid of the task */
	u32 pad;
};
_Static_assert(sizeof(struct procdb_observation) == 80, "shared with BPF");

/* As many predictions as the kernel side has room for, half of them during a tick only. */
#define PREDICTIONS_MAX (1U << 17)
