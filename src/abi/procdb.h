/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The profiles that BPF programs observe, and the predictions that they get. */
#include "abi/types.h"

/*
 * The key of a profile: the executable and the role of a task, whatever name the
 * task gives itself. If the executable is unknown (0), the name alone is the key.
 */
struct procdb_key {
	u64 exe_id; /* hash of the executable, made by the caller; 0: unknown */
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

/* An observation of the BPF programs; a prediction has the same layout. */
struct procdb_record {
	u8 tier;
	u8 corrects; /* the tier reported before for this same task plus one, or 0 */
	u8 pad[6];
	struct procdb_behaviour behaviour;
};
_Static_assert(sizeof(struct procdb_record) == 40, "shared with BPF");

/* The record in the ring buffer of the learning programs. */
struct procdb_observation {
	struct procdb_key key;
	struct procdb_record record;
	u32 owner; /* uid of the task */
	u32 pad;
};
_Static_assert(sizeof(struct procdb_observation) == 80, "shared with BPF");

/*
 * Capacity of the predictions map: twice the maximum number of profiles. More
 * than half of it is used only during a tick of the process database.
 */
#define PREDICTIONS_MAX (1U << 17)
